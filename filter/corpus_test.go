package filter

import (
	"strings"
	"testing"
)

// outputs are what real commands print, with secrets planted where ‹ and › stand.
// All of a planted secret has to go, and nothing around it.
var outputs = []struct{ command, text string }{
	{"env", "PATH=/usr/bin\nAWS_ACCESS_KEY_ID=‹AKIA{base32:16}›\nAWS_SECRET_ACCESS_KEY=‹{base64:40}›\nHOME=/root\n"},
	{"env url", "DATABASE_URL=postgres://app:‹{alnum:18}›@db.internal:5432/app\nREDIS_URL=redis://:‹{alnum:20}›@cache:6379/0\n"},
	{"export -p", "declare -x API_KEY=\"‹{alnum:32}›\"\ndeclare -x EDITOR=\"vi\"\n"},
	{"printenv -0", "A=1\x00DB_PASSWORD=‹{token:20}›\x00Z=2\x00"},
	{"docker inspect", `"Env": ["POSTGRES_PASSWORD=‹{alnum:16}1›", "PATH=/usr/bin"],` + "\n"},
	{"terraform output", "db_endpoint = \"db.example.org\"\ndb_password = \"‹{alnum:20}7›\"\n"},
	{"terraform json", `{"db_secret":{"sensitive":true,"value":"x"},"api_token":"‹{alnum:30}77›"}`},
	{"git remote -v", "origin\thttps://oauth2:‹glpat-{alnum:20}›@gitlab.com/a/b.git (fetch)\n"},
	{"git config -l", "user.name=Bob\nhttp.https://github.com/.extraheader=AUTHORIZATION: basic ‹{base64:40}›\ncore.bare=false\n"},
	{"git push", "remote: https://‹ghp_{alnum:36}›@github.com/a/b.git\n"},
	{"curl -v", "> GET / HTTP/1.1\r\n> Host: h\r\n> X-Api-Key: ‹{alnum:32}›\r\n> Authorization: Bearer ‹{token:40}›\r\n>\r\n< HTTP/1.1 200 OK\r\n< set-cookie: session=‹{alnum:40}›; Path=/\r\n"},
	{"curl trace", "=> Send header\n0000: Authorization: Basic ‹{base64:32}=›\n"},
	{"http dump", `map[Authorization:[Bearer ‹{token:43}›] Accept:[*/*]]` + "\n"},
	{"http json", `{"headers":{"Authorization":["Bearer ‹{token:40}›"],"Accept":["*/*"]}}` + "\n"},
	{"gh auth status", "  ✓ Logged in to github.com account bob\n  - Token: ‹gho_{alnum:36}›\n  - Token scopes: 'repo'\n"},
	{"npm config", "//registry.npmjs.org/:_authToken = \"‹npm_{alnum:36}›\"\n_auth = \"‹{base64:32}7A›\"\nregistry = \"https://registry.npmjs.org/\"\n"},
	{"aws sts", "{\n    \"Credentials\": {\n        \"AccessKeyId\": \"‹ASIA{base32:16}›\",\n        \"SecretAccessKey\": \"‹{base64:40}›\",\n        \"SessionToken\": \"‹{base64:200}›\",\n        \"Expiration\": \"2024-01-01T00:00:00Z\"\n    }\n}\n"},
	{"az token", `{"accessToken": "‹eyJhbGciOiJIUzI1NiJ9.{base64url:100}.{base64url:43}›", "tokenType": "Bearer"}` + "\n"},
	{"gcloud token", "‹ya29.{token:120}›\n"},
	{"vault read", "Key                Value\n---                -----\nlease_id           database/creds/ro/x\npassword           ‹{alnum:20}›\ntoken              ‹hvs.{token:90}›\n"},
	{"heroku config", "=== app Config Vars\nSECRET_KEY_BASE: ‹{hex:64}›\nWEB_CONCURRENCY: 2\n"},
	{"psql dsn", "host=db port=5432 user=app password=‹{alnum:16}› dbname=x sslmode=require\n"},
	{"jdbc", "jdbc:postgresql://db/app?user=x&password=‹{alnum:16}›&ssl=true\n"},
	{"mongo", "mongodb+srv://app:‹{alnum:16}›@cluster0.example.mongodb.net/?retryWrites=true\n"},
	{"azure storage", "DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=‹{base64:86}==›;EndpointSuffix=core.windows.net\n"},
	{"sql server", "Server=tcp:db,1433;User ID=sa;Password=‹{alnum:16}›;Encrypt=True\n"},
	{"spring", "spring.datasource.username=app\nspring.datasource.password=‹{alnum:16}›\n"},
	{"python dict", "{'user': 'bob', 'password': '‹{alnum:14}›', 'port': 5432}\n"},
	{"python repr", "Config(host='h', api_key='‹{alnum:32}›', debug=False)\n"},
	{"ruby", "config = { :user => \"bob\", :password => \"‹{alnum:14}›\" }\n"},
	{"php", "define('DB_PASSWORD', '‹{alnum:14}›');\n"},
	{"powershell", "$env:API_KEY = \"‹{alnum:32}›\"\n"},
	{"set -x", "+ curl -H 'Authorization: token ‹ghp_{alnum:36}›' https://api.github.com/user\n+ echo done\n"},
	{"kubectl create", "kubectl create secret generic x --from-literal=password=‹{alnum:16}›\n"},
	{"kubeconfig", "    client-key-data: ‹LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tCk{base64:400}›\n    token: ‹{alnum:60}›\n"},
	{"service account", `{"type": "service_account", "private_key_id": "x", "private_key": "‹-----BEGIN PRIVATE KEY-----\n{base64:64}\n{base64:64}\n{base64:20}\n-----END PRIVATE KEY-----›\n", "client_email": "a@b"}` + "\n"},
	{"wireguard", "[Interface]\nPrivateKey = ‹{base64:43}=›\nAddress = 10.0.0.1/24\n"},
	{"maven", "<server><id>x</id><password>‹{alnum:16}›</password></server>\n"},
	{"xml attribute", "<db user=\"a\" password=\"‹{alnum:16}›\"/>\n"},
	{"toml", "[registry]\ntoken = \"‹{alnum:32}77›\"\n"},
	{"oauth form", "grant_type=client_credentials&client_id=abc&client_secret=‹{alnum:32}›&scope=x\n"},
	{"presigned", "https://b.s3.amazonaws.com/k?X-Amz-Credential=‹AKIA{base32:16}%2F20240101›&X-Amz-Signature=‹{hex:64}›\n"},
	{"sas", "https://x.blob.core.windows.net/c/b?sv=2022-11-02&sp=r&sig=‹{alnum:40}%2F77%3D›\n"},
	{"slack hook", "curl -X POST ‹https://hooks.slack.com/services/T{upalnum:8}/B{upalnum:8}/{alnum:24}› -d x\n"},
	{"telegram", "https://api.telegram.org/bot123456789‹:AA{alnum:33}›/getMe\n"},
	{"sendgrid", "SENDGRID=‹SG.{alnum:22}.{alnum:43}›\n"},
	{"log line", "2024-01-01T00:00:00Z DEBUG auth header=Bearer session_token=‹{alnum:40}› user=bob\n"},
	{"json log", `{"level":"info","msg":"login","password":"‹{alnum:14}›","ok":true}` + "\n"},
	{"go error", `dial: parse "postgres://u:‹{alnum:14}›@h/db": invalid port` + "\n"},
	{"rails", `Started POST "/login" Parameters: {"user"=>"bob", "password"=>"‹{alnum:14}›"}` + "\n"},
	{"diff", "-api_key: ‹{alnum:32}›\n+api_key: ‹{hex:32}›\n"},
	{"grep -n", "config/app.yml:12:  secret_key: ‹{alnum:40}›\n"},
	{"csv header", "curl -u admin:‹{alnum:14}› https://h/\n"},
	{"mysql", "mysql -uroot -p‹{alnum:14}› -e 'select 1'\n"},
	{"coloured", "\x1b[36mAPI_TOKEN\x1b[0m=\x1b[33m‹{alnum:36}77›\x1b[0m\n"},
	{"yaml anchor", "stringData:\n  password: ‹{alnum:16}›\n  user: bob\n"},
	{"k8s data", "apiVersion: v1\ndata:\n  password: ‹{base64:22}==›\nkind: Secret\n"},
	{"kubectl yaml", "apiVersion: v1\ndata:\n  .dockercfg: ‹aGVsbG8gd29ybGQgaGVsbG8=›\n  tls: ‹c2VjcmV0IHRleHQgaGVyZSE=›\n  bin: /////////////w==\n  n: \"1\"\nkind: Secret\nmetadata:\n  name: aGVsbG8gd29ybGQgaGVsbG8=\n"},
	{"kubectl json", "{\n    \"apiVersion\": \"v1\",\n    \"data\": {\n        \"a.b\": \"‹aGVsbG8gd29ybGQgaGVsbG8=›\",\n        \"c\": \"‹c2VjcmV0IHRleHQgaGVyZSE=›\"\n    },\n    \"kind\": \"aGVsbG8gd29ybGQgaGVsbG8=\"\n}\n"},
	{"kubectl json line", `{"apiVersion":"v1","data":{"a":"‹aGVsbG8gd29ybGQgaGVsbG8=›","b":"‹c2VjcmV0IHRleHQgaGVyZSE=›"},"kind":"aGVsbG8gd29ybGQgaGVsbG8="}`},
	{"ini", "[db]\npasswd=‹{alnum:16}›\n"},
	{"cookie header", "Cookie: a=b; sessionid=‹{loalnum:32}›; csrftoken=‹{alnum:64}›\n"},
	{"proxy", "https_proxy=http://bob:‹{alnum:12}›@proxy:3128\n"},
	{"age", "# created: 2024\n‹AGE-SECRET-KEY-1{upalnum:58}›\n"},
	{"openai", "Incorrect API key provided: ‹sk-proj-{token:60}›. You can find\n"},
	{"jwt cookie", "token=‹eyJhbGciOiJSUzI1NiJ9.{base64url:200}.{base64url:342}›\n"},
}

func TestOutputs(t *testing.T) {
	leaked, planted := 0, 0
	for _, o := range outputs {
		marked := expandRecord(t, o.text)
		var in, want strings.Builder
		var secrets []string
		for rest := marked; ; {
			before, after, ok := strings.Cut(rest, "‹")
			in.WriteString(before)
			want.WriteString(before)
			if !ok {
				break
			}
			secret, more, _ := strings.Cut(after, "›")
			in.WriteString(secret)
			want.WriteString("•")
			secrets = append(secrets, secret)
			rest = more
		}
		planted += len(secrets)
		out := filterAll(t, testSet(t, Config{}), in.String())
		for _, s := range secrets {
			if strings.Contains(out, s) {
				leaked++
			}
		}
		if got := placeholder.ReplaceAllString(out, "•"); got != want.String() {
			t.Errorf("%s:\ngot  %q\nwant %q", o.command, got, want.String())
		}
	}
	t.Logf("%d of %d planted secrets are left", leaked, planted)
}

// benign are lines of real kinds in which nothing is secret.
var benign = []string{
	"commit {hex:40}\nMerge: {hex:7} {hex:7}\n", "index {hex:7}..{hex:7} 100644\n", "sha256:{hex:64}\n", "digest: sha256:{hex:64} size: 1234\n",
	"golang.org/x/sys v0.1.0/go.mod h1:{base64:43}=\n", "\"integrity\": \"sha512-{base64:86}==\",\n", "resolved \"https://registry.npmjs.org/a/-/a-1.0.0.tgz#{hex:40}\"\n",
	"{hex:64}  file.tar.gz\n", "checksum = \"{hex:64}\"\n", "ETag: \"{hex:32}\"\n", "x-request-id: 123e4567-e89b-12d3-a456-426614174000\n",
	"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA{base64:44} bob@host\n", "SHA256:{base64:43} bob@host (ED25519)\n", "-----BEGIN PUBLIC KEY-----\n{base64:64}\n-----END PUBLIC KEY-----\n",
	"-----BEGIN CERTIFICATE REQUEST-----\n{base64:64}\n-----END CERTIFICATE REQUEST-----\n", "-----BEGIN PGP SIGNATURE-----\n\n{base64:64}\n=abcd\n-----END PGP SIGNATURE-----\n",
	"public_key = \"{base64:44}\"\n", "primary_key: id\n", "foreign key: user_id_{digit:8}\n", "cache-key: go-{hex:40}\n", "key: value_{digit:9}\n",
	"password: ********\n", "password: xxxxxxxxxxxx\n", "password=<your password>\n", "password=${DB_PASSWORD}\n", "password: \"{{ .Values.password }}\"\n",
	"password: !vault |\n", "PASSWORD=changeme\n", "password: null\n", "password: string\n", "passwordHash: PasswordHasher\n", "api_key=YOUR_API_KEY_HERE\n",
	"api_key = os.environ[\"API_KEY\"]\n", "secret = config.get('secret_name')\n", "token = lexer.nextToken()\n", "if (token == Token.IDENTIFIER) {\n",
	"const token = await getAccessToken();\n", "token: ${{ secrets.GITHUB_TOKEN }}\n", "func (p *Parser) token(kind TokenKind) Token {\n", "tokens: 1234, cost: 0.02\n",
	"eos_token: <|endoftext|>\n", "pad_token_id: 50256\n", "total_tokens=128000000000\n", "Author: Bob <bob@example.org>\n", "authority: https://example.org/auth\n",
	"auth: oauth2-proxy-configuration\n", "signature: func(a int, b string) error\n", "Signature: Good signature from Alice Example\n",
	"def win_getpass(prompt='Password: ', stream=None):\n", "authorization = self._get_param(\"authorization\")\n",
	"[\"--account-key\",\"--sas-token\",\"--ftp-password\",\"--warc-header\"]\n", "[\"trust\", \"password\", \"scram-sha-256\", \"gss\"]\n",
	"apiVersion: v1\ndata:\n  config: |\n    key: aGVsbG8gd29ybGQgaGVsbG8=\n  mode: production\nkind: ConfigMap\n", "data: aGVsbG8gd29ybGQgaGVsbG8=\n",
	"see https://user@example.org/path and mailto:a@b.org\n", "git@github.com:org/repo.git\n", "ssh://git@github.com/org/repo.git\n", "postgres://localhost:5432/db\n",
	"https://example.org/search?q=a&page=2&key=name&code=404\n", "at Object.<anonymous> (/srv/app/node_modules/x/index.js:10:5)\n", "goroutine 1 [running]:\n\truntime.main()\n",
	"0x00007ffd5a3c1e40 in main () from /lib/x86_64-linux-gnu/libc.so.6\n", "12:34:56.789 [main] INFO c.e.App - Started App in 1.234 seconds\n",
	"drwxr-xr-x 2 root root 4096 Jan  1 00:00 secrets\n", "The password is required to continue, see the manual.\n", "Enter passphrase for key '/root/.ssh/id_ed25519': ",
	"Password for 'https://bob@github.com': ", "error: secret \"db-credentials\" not found\n", "secret/db-credentials created\n", "cookie: disabled\n", "Cookie policy: accept all\n",
	"Authorization: required\n", "authorization: none\n", "WWW-Authenticate: Basic realm=\"restricted area\"\n", "pass: 12, fail: 0\n", "PASS: TestSomething (0.00s)\n",
	"session_token_ttl = 3600s\n", "access_token_url: https://example.org/oauth/token\n", "secretName: web-tls-certificate\n", "keyring: /usr/share/keyrings/docker.gpg\n",
	"Rotating secret version 12 of projects/123/secrets/api-key\n", "sk-learn 1.2.3, sk_buff, sk-SK locale\n", "xoxo from the team\n", "AKIAAAAAAAAAAAAAAAAA\n", "AKIAIOSFODNN7EXAMPLE\n",
	"<input type=\"password\" name=\"password\" autocomplete=\"current-password\">\n", "label.password=Mot de passe oubli\u00e9\n", "パスワード: 変更してください\n", "Passwort: erforderlich\n",
	"-p /srv/data -u root mkdir -p build/output\n", "docker run -p 8080:80 -u 1000:1000 nginx\n", "curl -u admin https://h/\n", "data:image/png;base64,iVBORw0KGgo{base64:200}\n",
	"//# sourceMappingURL=data:application/json;base64,{base64:200}\n", "eyJ is how base64 JSON begins\n", "{hex:32} {hex:40} {hex:64} {base64:44}\n", "v1.0-rc1-{hex:40}\n",
	"function(e,t){var n=e.token,r=t.key;return n&&r?n.secret=r.password:e.auth=t.cookie}\n", "K001: device connected\n", "https://hooks.slack.com/services/\n", "::error file=a.go,line=1::bad token\n",
}

func TestBenign(t *testing.T) {
	for _, text := range benign {
		in := expandRecord(t, text)
		if out := filterAll(t, testSet(t, Config{}), in); out != in {
			t.Errorf("%q became %q", in, out)
		}
	}
}
