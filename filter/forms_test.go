package filter

import (
	"regexp"
	"strings"
	"testing"
)

// formRows show each form of links: texts whose marked values have to go, and texts of nearly the
// same form that have to stay. {v} is a random value, {u} a UUID, {p} a password as people make them.
var formRows = []struct {
	form string
	yes  []string
	no   []string
}{
	{"operator", []string{
		"db_password = ‹{v}›\n", "DB_PASSWORD ?= ‹{v}›\n", "DB_PASSWORD += ‹{v}›\n", "API_TOKEN := ‹{v}›\n", "secret ::= ‹{v}›\n", "password <- ‹{v}›\n",
		"password -> ‹{v}›\n", ":password => '‹{v}›'\n", "password ==> ‹{v}›\n", "password ||= \"‹{v}›\"\n", "password //= '‹{v}›';\n", "password ??= '‹{v}›'\n", "password → ‹{v}›\n",
		"password%3D‹{v}›%26x", "{&quot;password&quot;:&quot;‹{v}›&quot;}", "%22password%22%3A%22‹{v}›%22", `{"s":"{\"password\":\"‹{v}›\"}"}`, `"{\\\"password\\\":\\\"‹{v}›\\\"}"`,
		"- **Password:** ‹{v}›\n", "**Password**: ‹{v}›\n", "密码：‹{p}›\n", "Пароль: ‹{p}›\n", "mot de passe : ‹{p}›\n", "Contraseña: ‹{p}›\n", "パスワード: ‹{p}›\n",
		"password: !!str ‹{v}›\n", "$cfg->{secret} = '‹{v}›';\n", "$c{db}{password} = \"‹{p}›\";\n", "cfg['db']['password'] = '‹{p}›'\n", "<password>‹{v}›</password>\n",
		"curl --token ‹{v}› x\n", "  [\"secretKey\":\"App\\Config\":private]=>\n  string(24) \"‹{v}›\"\n", "Server=db;UID=app;PWD=‹{p}›;\n", "--set-string auth.password=‹{v}›\n",
		"<Config host=db password=‹{v}›>\n", "API_TOKEN_PROD=‹{v}›\n", "X_KEY=‹{hex:32}›\n", "X_TOKEN=‹{u}›\n", "X_KEY: ‹{u}›\n",
	}, []string{
		"password == other.password\n", "if (token == null) {\n", "password = getpass()\n", "password: String\n", "password: $(vault read x)\n", "token: waiting for the lock\n",
		"cache_key = {hex:32}\n", "public_key: {v}\n", "session_id: {hex:32}\n", "commit: {hex:40}\n", "X_KEY_ID={u}\n", "TOKEN_HASH={hex:64}\n", "API_TOKEN_URL=https://h/oauth/v2/token\n",
		"MD5 (\"secret.key\") = {hex:32}\n", "Passwort: vergessen\n", "Пароль: неверный\n", "密码：错误\n", "Contraseña: incorrecta\n", "virsh secret-dumpxml --secret {u}\n", "vault token lookup -accessor {v}\n",
		"X-Cache-Key: /assets/app.{hex:8}.js\n", "Mot de passe : oublié ?\n",
	}},
	{"typed", []string{
		"password: str = \"‹{v}›\"\n", "let password: &str = \"‹{v}›\";\n", "String password = \"‹{v}›\";\n", "val password: String? = \"‹{v}›\"\n",
		"public string ClientSecret { get; set; } = \"‹{v}›\";\n", "const api_token [24]u8 = \"‹{v}›\";\n", "password VARCHAR(20) = '‹{v}›'\n",
	}, []string{"password: str = \"\"\n", "password: Optional[str] = None\n", "let password: &str = \"password\";\n"}},
	{"wrapped", []string{
		"password = SecretStr(\"‹{v}›\")\n", "apiKey = Just \"‹{v}›\"\n", "token = Some(‹{v}›)\n", "Token = <<\"‹{v}›\">>,\n", "secret: []byte(\"‹{v}›\")\n", "secret = &Secret{\"‹{v}›\"}\n",
	}, []string{"password = os.environ[\"DB_PASSWORD\"]\n", "token = strings.TrimPrefix(\"Bearer token\")\n", "key = Just \"name\"\n"}},
	{"fallback", []string{"process.env.DB_PASSWORD || '‹{v}›'\n", "${DB_PASSWORD:-‹{v}›}\n"}, []string{"password || 'password'\n"}},
	{"tuple", []string{"auth=('bob', '‹{p}›')\n"}, []string{"auth=('bob', getpass())\n"}},
	{"element", []string{"[\"--password\",\"‹{v}›\"]\n", "(\"password\", \"‹{v}›\")\n", "1) \"requirepass\"\n2) \"‹{v}›\"\n", "page.type('#password', '‹{p}›')\n",
		"\"config\" \"set\" \"requirepass\" \"‹{v}›\"\n"}, []string{"[\"password\",\"username\"]\n", "(\"password\", \"must not be empty\")\n"}},
	{"sibling", []string{"{\"name\":\"DB_PASSWORD\",\"value\":\"‹{v}›\"}\n", "- name: DB_PASSWORD\n  value: ‹{v}›\n", "<add key=\"DbPassword\" value=\"‹{v}›\"/>\n",
		"<key>password</key>\n<string>‹{v}›</string>\n", "<AdminPassword><Value>‹{v}›</Value></AdminPassword>\n", "variable \"db_password\" {\n  default = \"‹{v}›\"\n}\n"},
		[]string{"{\"name\":\"DB_PASSWORD\",\"valueFrom\":{\"secretKeyRef\":{\"name\":\"db-2f7c9b\"}}}\n", "{\"name\":\"color\",\"value\":\"{v}\"}\n"}},
	{"near", []string{
		"Le mot de passe temporaire est : ‹{p}›\n", "temporary admin user created with password ‹{v}›\n", "We rotated the signing secret, the new value is ‹{hex:64}›.\n",
		"Generated token ‹{hex:40}› for user anna\n", "API_SECRET=$(openssl rand -hex 32) # ‹{hex:64}›\n", "  APP_SECRET     n/a     \"‹{hex:32}›\"\n", "le mdp : ‹{p}›\n",
		"The admin password is located in /data/admin.password\n‹{u}›\n", "API key #1: ‹{v}›\n", "Client Secret,‹{v}›\n", "Mật khẩu: ‹{p}›\n",
	}, []string{
		"secret scanning: 0 findings in 3121 files ({hex:40})\n", "Verifying token... is valid    correlation_id={alnum:26}\n", "fix the pass of the path\n\n ---> {hex:12}\n",
		"secret \"shop-db-7d9f8c6b54\" not found in namespace prod\n", "Enter your password. Note: it must have 8 characters, e.g. Abc12345!\n", "signature: good, key {HEX:16}\n",
		"Your webhook signing secret is set.\n --> payment_intent.created [evt_{alnum:24}]\n", "token refreshed, next one in 3599s, request {u}\n", "MD5 (\"secret.key\") = {hex:32}\n",
		"[\"X-Gateway-Token\", null], [\"X-Trace\", \"{hex:32}\"]\n", "password last changed on host web-7f9c8d4b2k\n",
	}},
	{"zone", []string{"Rotated token, old ‹{alnum:40}› new ‹{alnum:40}› for tenant acme\n", "$ az batch account keys list -n b1 # keys and secrets\n{\n  \"accountName\": \"b1\",\n  \"primary\": \"‹{alnum:40}›\",\n  \"secondary\": \"‹{alnum:40}›\"\n}\n",
		"SELECT login, secret_key FROM clients;\nanna|‹{alnum:40}›\nbert|‹{alnum:40}›\n"},
		[]string{"password reset, request id: {alnum:24}\n", "the token is new\ncommit {hex:40}\n", "token rotated, fingerprint SHA256:{base64:43}\n", "auth v0.13.1 h1:{base64:43}=\n", "secret synced from sha512-{base64:86}==\n",
			"api_key created\nPublicKey = {base64:43}=\n", "the secret is at projects/ns/objects/{alnum:28}/versions\n", "token cache key: v1-dependencies-{base64:43}=\n", "password for {lower:24} and PKCS8EncodedKeySpec2048\n"}},
	{"answer", []string{"> config('db.password')\n= \"‹{p}›\"\n", "token ‹{alnum:40}›\n> settings('mail.smtp.password')\n=> \"‹{p}›\"\n", "wifi_passphrase=‹{digit:9}›\n", "$ cat backup-codes.txt\n‹{hex:5}-{hex:5}›\n‹{hex:5}-{hex:5}›\n",
		"SENDGRID_PASSWORD           False      ‹{hex:32}›\n", "login: { id: '{u}', pass: '‹{u}›' }\n", "$ sqlplus app/‹{p}›@//db1.example.org:1521/XE\n", "$ impdp app/‹{p}›@XE schemas=app\n"},
		[]string{"BUILD_NUMBER_PASS  ok  {hex:12}\n", "token-cache           True           {hex:32}\n", "SHA256(server.key)= {hex:64}\n", "backup-codes.txt\nreadme.md\nindex-2.html\n", "$ sqlplus app@//db1.example.org:1521/XE\n", "passed = 12\n= \"ok\"\n",
			"  password: AgB{base64:680}\n", "AUTH LOGIN\n334 VXNlcm5hbWU6\nYW5uYUBleGFtcGxlLm9yZw==\n"}},
	{"before", []string{"{\"value\":\"‹{v}›\",\"name\":\"API_KEY\"}\n", "<add value=\"‹{v}›\" key=\"DbPassword\"/>\n", "{\n  \"Value\": \"‹{v}›\",\n  \"Type\": \"String\",\n  \"Name\": \"/app/db_password\"\n}\n"},
		[]string{"{\"value\":\"{v}\",\"name\":\"color\"}\n", "{\"value\":\"{hex:32}\",\"name\":\"cache_key\"}\n", "<input value=\"{v}\" type=\"hidden\"/>\n"}},
	{"blank", []string{"requirepass ‹{v}›\n", "password ‹{p}›\n", "CREATE ROLE a PASSWORD '‹{v}›';\n", "DB_PASSWORD\t‹{v}›\n", "| password | ‹{v}› |\n", "machine h login bob password ‹{v}›\n", "ENV API_SECRET ‹{v}›\n"},
		[]string{"password required\n", "token expired at 12:00\n", "secret scanning enabled\n", "password-hash v1.2.3-rc4\n"}},
	{"kind", []string{"    Password    REG_SZ    ‹{v}›\n", "CREATE USER a IDENTIFIED BY '‹{v}›';\n"}, []string{"    Password    REG_SZ    \n"}},
	{"change", []string{"password = \"old\" -> \"‹{v}›\"\n"}, []string{"password = \"old\" -> (known after apply)\n"}},
	{"phrase", []string{"password for user bob: ‹{v}›\n", "Unseal Key 1: ‹{v}›\n", "set password to \"‹{v}›\"\n", "Access token was successfully created: ‹{hex:40}›\n"},
		[]string{"password for user bob: \n", "token is invalid\n"}},
	{"next line", []string{"password: |\n  ‹{v}›\n", "password:\n  ‹{v}›\n", "  - --password\n  - ‹{v}›\n"}, []string{"password:\n  required: true\n", "secrets:\n  - db\n"}},
	{"below", []string{"requirepass\n‹{v}›\n", "==> /run/secrets/db_password <==\n‹{v}›\n", "$ cat /run/secrets/db_password\n‹{p}›\n", "/config/app/db_password\n‹{p}›\n"},
		[]string{"secret.key\nreadme-2.txt\n", "passwords\n2024-05-01\n", "token\nline 42 of parser.go\n"}},
	{"cell", []string{"<td>DB_PASSWORD</td><td>‹{v}›</td>\n", "<tr><td><code>api_key</code></td>\n<td><code>‹{v}›</code></td></tr>\n", "<dt>Password</dt><dd>‹{p}›</dd>\n"},
		[]string{"<td>password</td><td>required</td>\n", "<td>cache_key</td><td>{hex:32}</td>\n"}},
	{"call", []string{"cy.get('#password').type('‹{p}›')\n", "page.locator(\"input[name='password']\").fill(\"‹{v}›\")\n", "d.find_element(By.ID, \"password\").send_keys(\"‹{p}›\")\n"},
		[]string{"cy.get('#password').type('wrong')\n", "expect('password').toBe('hidden')\n"}},
	{"stdin", []string{"echo '‹{p}›' | sudo -S apt update\n", "echo -n \"‹{v}›\" | cryptsetup luksOpen /dev/sdb1 data -\n", "$ echo ‹{v}› | docker login -u bob --password-stdin\n",
		"printf '%s' '‹{p}›' | docker login -u bob --password-stdin\n", "+ kinit bob <<< '‹{p}›'\n", "echo \"bob:‹{p}›\" | sudo chpasswd\n", "echo '‹{p}›' | pass insert -e shop\n",
		"echo ‹{v}› | gh secret set DEPLOY\n"},
		[]string{"echo '{v}' | sha256sum\n", "echo {v} | cut -c1-8\n", "echo \"$PASS\" | docker login -u bob --password-stdin\n", "printf '%s' done | sudo -S true\n",
			"cat <<< '{v}'\n", "echo {v}\nsudo -S true\n", "echo deploying || login\n"}},
	{"parent", []string{"api_tokens = {\n  datadog = \"‹{v}›\"\n  other = \"‹{v}›\"\n}\n", "secrets:\n  db: ‹{v}›\n  mail: ‹{v}›\n", "api_keys:\n  - key: ‹{v}›\n", "'secrets' => ['a' => '‹{v}›']\n"},
		[]string{"secrets:\n  - name: regcred-{hex:8}\n", "secrets:\n  db:\n    file: ./db-{hex:12}.txt\nimage: app:{hex:12}\n", "tokens: { input: 5123, id: \"{v}\" }\n"}},
	{"attributes", []string{"<password encrypted=\"false\">‹{v}›</password>\n"}, []string{"<password encrypted=\"true\"/>\n"}},
	{"session", []string{"USER bob\r\nPASS ‹{p}›\r\n"}, []string{"PASS src/a1_test.go\n"}},
	{"pair", []string{"{password, <<\"‹{v}›\">>}.\n"}, []string{"{password, undefined}.\n"}},
	{"remark", []string{"Password (for bob): ‹{v}›\n", "password........\"‹{p}›\"\n", "password ............: ‹{p}›\n"}, []string{"password...\n", "Checking password......... ok\n"}},
	{"near", []string{"using token ‹{v}› for bob\n"}, []string{"using token from the environment\n"}},
	{"columns", []string{"INSERT INTO u (name, password) VALUES ('bob', '‹{p}›');\n"}, []string{"INSERT INTO u (name, color) VALUES ('bob', '{v}');\n"}},
	{"header", []string{"user,password\nbob,‹{p}›\n", "name,password\n\"Eve, M.\",‹{v}›\n", "| user | password |\n|---|---|\n| bob | ‹{v}› |\n", "USER   PASSWORD\nbob    ‹{p}›\n",
		"Access key ID,Secret access key\nx,‹{v}›\n", "# client\tserver\tsecret\tIP\nbob\t*\t‹{v}›\t*\n"},
		[]string{"user,color\nbob,{v}\n", "NAME   TOKENS\nbob    12345678\n"}},
	{"user", []string{"user = \"bob:‹{p}›\"\n", "[smtp.example.org]:587 bob:‹{p}›\n", "npmAuthIdent: \"ci:‹{p}›\"\n"}, []string{"user = \"1000:1000\"\n", "user=bob:users\n"}},
	{"answer", []string{">>> cfg[\"password\"]\n'‹{v}›'\n", "irb(main):001> ENV[\"API_KEY\"]\n=> \"‹{v}›\"\n", "In [3]: cfg.api_key\nOut[3]: '‹{v}›'\n", "(gdb) p password\n$1 = \"‹{v}›\"\n",
		"PS C:\\> $env:API_TOKEN\n‹{v}›\n", "[anna@web ~]$ pass show shop/password\n‹{p}›\n", "~ ❯ echo $API_TOKEN\n‹{v}›\n", "bash-5.1$ printenv API_TOKEN\n‹{v}›\n", "/ # cat /run/secrets/db_password\n‹{p}›\n",
		"$ config get api_key\n\n‹{v}›\n", "$ git config --get gitlab.token\n‹{v}›\n", "$ cat db_password\n‹{v}›"},
		[]string{"$ git log --format=%H token\n{hex:40}\n", "$ sha256sum secret\n{hex:64}\n", ">>> token\n'identifier'\n", "mysql> show secrets;\nEmpty set (0.00 sec)\n", "<div> password\n{lower:12}\n", "2025-03-01 INFO read token\nX9fkG2mQ81ab done\n"}},
	{"list below a title", []string{"Private Keys\n============\n(0) ‹0x{hex:64}›\n(1) ‹0x{hex:64}›\n", "API keys\n--------\n- ‹{v}›\n- ‹{v}›\n", "# API Key\n‹{v}›\n", "AUTH\r\n$24\r\n‹{v}›\r\n"},
		[]string{"Public Keys\n===========\n(0) 0x{hex:64}\n", "Tokens\n======\n- read the file\n- write the file\n"}},
	{"ruler", []string{"Name Password         Url\n---- --------         ---\nbob  ‹{p}› h\n", "User API Key\n---- -------\nbob  ‹{v}›\n"},
		[]string{"Name Colour           Url\n---- ------           ---\nbob  {v} h\n", "the password of\n--------------\nbob {hex:16}\n"}},
	{"title of words", []string{"| API Key | ‹{v}› |\n", "| Service | Access Token |\n|---|---|\n| a | ‹{v}› |\n", "  Auth  Auth passphrase   Host\n  SHA   ‹{v}›  db\n", "\"Client Secret\",\"‹{v}›\"\n", "Client Secret,‹{v}›\n"},
		[]string{"| API Key | required |\n", "| Public Key | {v} |\n", "\"Client Secret\",\"must not be empty\"\n"}},
	{"tags", []string{"<tr><th>User</th><th>Password</th></tr>\n<tr><td>bob</td><td>‹{p}›</td></tr>\n<tr><td>eve</td><td><code>‹{v}›</code></td></tr></table>\n",
		"<TR><TH>API Key</TH>\n<TH>host</TH>\n</TR>\n<TR><TD>‹{v}›</TD>\n<TD>{hex:24}</TD></TR>\n", "<label>Password</label><input type=\"text\" value=\"‹{p}›\">\n", "<span class=\"k\">Password</span>: <span class=\"v\">‹{p}›</span>\n", "<div>API key</div><div>‹{v}›</div>\n", "|| Password || ‹{p}› ||\n", "<field name=\"password\" type=\"str\">‹{v}›</field>\n"},
		[]string{"<tr><th>User</th><th>Colour</th></tr><tr><td>bob</td><td>{v}</td></tr>\n", "<tr><th>Password</th><th>Id</th></tr><tr><td>required</td><td>{hex:24}</td></tr></table>\n{hex:24}\n",
			"<label>Password</label><input type=\"password\" value=\"\">\n"}},
	{"object of its own", []string{"{\"variable\":{\"name\":\"API_KEY\"},\"value\":\"‹{v}›\"}\n", "password {\n  value = \"‹{v}›\"\n}\n", "api_keys:\n- ‹{v}›\n- ‹{v}›\n", "--object secret,id=sec0,data=‹{v}›\n"},
		[]string{"[{\"name\":\"API_KEY\"},{\"value\":\"{hex:24}\"}]\n", "password {\n  policy = \"minimum-12\"\n}\n"}},
	{"words between", []string{"api key generated: ‹{v}›\n", "changed password from ‹{v}› to ‹{v}›\n", "Set password to ‹{p}›\n", "The API key was changed to ‹{v}›\n", "API key #1: ‹{v}›\n", "Access Token - ‹{v}›\n", "password [default]: ‹{v}›\n"},
		[]string{"token found: identifier\n", "password changed from the console\n", "set token to null\n", "the token was sent to 10.0.0.7\n", "token #12: identifier\n", "password - the password of the user\n"}},
	{"pairs of other languages", []string{"((user . \"bob\") (password . \"‹{v}›\"))\n", "\"Password\"\t\t\"‹{v}›\"\n", "const apiKey* = \"‹{v}›\"\n", "password ⇒ ‹{v}›\n", "db_password: .asciz \"‹{v}›\"\n", "$db{password} = \"‹{v}›\";\n",
		"uint8_t aes_key[16] = {‹0x1f, 0x83, 0xd9, 0xab, 0xfb, 0x41, 0xbd, 0x6b, 0x5b, 0xe0, 0xcd, 0x19, 0x13, 0x7e, 0x21, 0x79›};\n", "IDENTIFIED WITH 'mysql_native_password' AS '‹*{HEX:40}›'\n", "[--user, bob, --password, ‹{v}›]\n"},
		[]string{"(password . nil)\n", "\"Password\"\t\t\"required\"\n", "uint8_t aes_key[16] = {0};\n", "char token[64] = {0x00, 0x01};\n"}},
	{"stands in", []string{"password: ${X:-‹{v}›}\n", "api_key={{ x | default('‹{v}›') }}\n", "password = os.getenv(\"X\", \"‹{v}›\")\n", "apiKey = process.env.X || \"‹{v}›\"\n", "api_key = os.environ.get(\"X\") or \"‹{v}›\"\n", "apiKey = cfg.key ?? '‹{v}›'\n"}, []string{"apiKey = x || \"none\"\n", "token = a or b\n", "password: ${X:-}\n", "password: ${X}\n", "api_key={{ x | default('') }}\n", "token = os.getenv(\"X\", \"default\")\n"}},
	{"scheme", []string{"authorization Bearer ‹{v}›\n", "Authorization=Bearer ‹{hex:40}›\n", "Bearer ‹{hex:40}›\n", "\"Authorization: Basic ‹{v}›[\\r][\\n]\"\n", "COOKIE='‹{v}›'\n", "document.cookie = \"sid=‹{v}›; path=/\"\n"},
		[]string{"Bearer authentication is required\n", "authorization header is missing\n", "Authorization=none\n", "Set-Cookie: theme=dark-mode-2; Path=/\n", "COOKIE=disabled\n"}},
	{"in an address", []string{"POST https://chat.example.org/hooks/‹{v}›\n", "\"https://ha.example.org/api/webhook/‹{hex:32}›\"\n", "jdbc:oracle:thin:bob/‹{v}›@db:1521:x\n"},
		[]string{"https://git.example.org/x/.git/hooks/pre-commit\n", "node_modules/hooks/{v}.js\n", "cvs://:pserver:anoncvs@cvs.example.org:/cvsroot\n"}},
	{"code", []string{"{\"verifyCode\":\"‹{digit:6}›\"}\n", "sms_code=‹{digit:6}›\n", "verification code: ‹{digit:6}›\n", "'passcode': '‹{digit:6}›'\n", "Passcode: ‹{digit:8}›\n", "\"otp_attempt\"=>\"‹{digit:6}›\"\n",
		"getByTestId('otp').fill(\"‹{digit:6}›\")\n", "cy.get('[name=pin]').type('‹{digit:4}›')\n", "driver.find_element(By.ID, \"pin\").send_keys(\"‹{digit:6}›\")\n"},
		[]string{"sms_code: delivered\n", "verify code: not valid\n", "passcode: required\n", "passcode length: 6\n", "\"passcode\": 123456\n", "otp attempts: 3\n", "status_code: 301302\n", "getByTestId('otp').toHaveCount(\"1\")\n", "getByTestId('row').fill(\"481920\")\n"}},
	{"confirmed", []string{"{\"password\":\"‹{p}›\",\"passwordConfirm\":\"‹{p}›\"}\n", "password_confirmation: ‹{p}›\n", "passwordRepeat=‹{p}›\n", "password_again => '‹{p}›'\n"},
		[]string{"password_confirmation: must match the password\n", "passwordConfirm: required\n", "token_confirm: {hex:12}\n", "password_verify($x, $hash)\n"}},
	{"groups", []string{"RELAY_KEY=‹f{hex:31}-{hex:8}-{hex:8}›\n", "| RELAY_KEY | x | ‹{hex:32}-{hex:8}-{hex:8}› |\n", "DB_PASSWORD=‹gujfi.063.zkjk›\n"},
		[]string{"relay_id={hex:32}-{hex:8}-{hex:8}\n", "cache_key: {hex:32}-{hex:8}\n", "DB_PASSWORD=vault.063.internal\n"}},
	{"rows of names", []string{"|  /a/DB_PASSWORD     |  SecureString |  7      |  ‹{alnum:20}›              |\n|  /a/RELAY_KEY     |  SecureString |  1      |  ‹{hex:32}-{hex:8}-{hex:8}› |\n",
		"│ API_TOKEN      │ dev  │ ‹{alnum:40}› │\n│ SEGMENT_WRITE_KEY  │ dev  │ ‹{alnum:32}› │\n", "| user | password |\n| bob | ‹{v}› |\n| eve | ‹{v}› |\n"},
		[]string{"|  /a/DB_PASSWORD     |  SecureString |  7      |  (hidden)              |\n|  /a/DB_HOST     |  String |  3      |  pg-stage.internal |\n"}},
	{"number in front", []string{"HTTP API:\n‹{digit:10}:AA{token:33}›\nkeep it\n", "https://api.telegram.org/bot‹{digit:9}:AA{token:33}›/getMe\n"}, []string{"1234567:AA{token:33}\n"}},
	{"next sentence", []string{"password authentication failed for \"ro\"\noh, the old one. it's ‹nzqgu7231?› since monday\n", "Passwort geändert. Es ist ‹nzqgu7231!›\n", "Generating token...\n‹{hex:40}›\n",
		"$ nmcli -s -g 802-11-wireless-security.psk connection show \"Gast\"\n‹mptef2203›\n"},
		[]string{"password authentication failed for \"ro\"\nit's monday since 7231\n", "Checking token...\n{hex:40}\n", "Generating checksum...\n{hex:40}\n", "$ nmcli -s -g 802-11-wireless-security.psk connection show\nconnection2203\n"}},
	{"option of its own", []string{"rootpw --plaintext ‹{p}›\n", "rootpw --iscrypted ‹$6${alnum:16}${alnum:86}›\n"}, []string{"$ aws ecr get-login-password --region eu-west-1 | docker login\n", "vault read secret --format json-2\n"}},
	{"recovery", []string{"Recovery Password:\n    ‹{digit:6}-{digit:6}-{digit:6}-{digit:6}-{digit:6}-{digit:6}-{digit:6}-{digit:6}›\n"}, []string{"password: 2025-03-01\n", "password: 1234-5678-9012\n"}},
	{"trace of a pipe", []string{"+ echo '‹{p}›'\n+ kinit bob\n", "+ echo ‹{p}›\n+ sudo -S true\n"}, []string{"+ echo {v}\n+ sha256sum\n", "echo {v}\n+ kinit bob\n"}},
	{"environment", []string{"api-key-prod: ‹{v}›\n", "db_password_staging=‹{v}›\n", "password_sha256_hex: ‹{hex:64}›\n"}, []string{"--password-hash sha512crypt\n", "checksum/secret: {hex:64}\n", "token-type: Bearer2\n"}},
	{"sent", []string{"write(5, \"USER bob\\r\\nPASS ‹{p}›\\r\\n\", 28) = 28\n", "*2\r\n$4\r\nAUTH\r\n$24\r\n‹{v}›\r\n", "AUTH\r\n$7\r\ndefault\r\n$24\r\n‹{v}›\r\n", "<- 334 UGFzc3dvcmQ6\n -> ‹{v}›\n", "db1:6379> AUTH ‹{p}›\n"},
		[]string{"write(1, \"PASS tests/test_9a.py\\r\\n\", 25) = 25\n", "<- 334 VXNlcm5hbWU6\n -> ZGVwbG95\n", "AUTH\r\n+OK\r\n", "AUTH\r\n$7\r\ndefault\r\n"}},
	{"member in brackets", []string{"set db(password) \"‹{p}›\"\n", "my ($user, $password) = (\"bob\", \"‹{p}›\");\n", "user, password = \"bob\", \"‹{p}›\"\n", "DATA(lv_password) = '‹{p}›'.\n"},
		[]string{"len(password) = 12\n", "check(password) \"failed\"\n", "user, password = login()\n"}},
	{"path", []string{"[\"db\",\"password\"]\t\"‹{p}›\"\n", "{\"field\":\"password\",\"new\":\"‹{p}›\"}\n"}, []string{"[\"db\",\"password\"]\ttrue\n", "{\"field\":\"password\",\"new\":\"required\"}\n"}},
	{"key of", []string{"'crypt' => [\n  'key' => '‹{hex:32}›'\n]\n", "{\"jwt\": {\"key\": \"‹{hex:64}›\"}}\n", "encryption:\n  key: ‹{hex:32}›\n", "AES key: ‹{hex:32}›\n"},
		[]string{"cache:\n  key: {hex:32}\n", "{\"restore\": {\"key\": \"{hex:32}\"}}\n", "type: jwt\nkey: {hex:32}\n"}},
	{"mnemonic", []string{"Seed phrase: ‹marble otter canyon flute ginger harbor velvet copper meadow lantern pepper saddle›\n", "{\"mnemonic\":\"‹marble otter canyon flute ginger harbor velvet copper meadow lantern pepper walnut›\"}\n"},
		[]string{"Seed phrase: write it down and keep it in a safe place where it is dry\n", "mnemonic: mov\n"}},
	{"mnemonic below", []string{"Phrase:\n‹marble otter canyon flute ginger harbor velvet copper meadow lantern pepper saddle›\n", "Keep this seed phrase in a safe place:\n‹marble otter canyon flute ginger harbor velvet copper meadow lantern pepper walnut›\n"},
		[]string{"Phrase:\nnot one word of this is a secret and so nothing goes\n", "Search phrase:\nwhere the wild things are kept\n"}},
	{"section", []string{"[LinkKey]\nKey=‹{HEX:32}›\nType=4\n", "[LocalSignatureKey]\nKey=‹{HEX:32}›\n", "[api_key]\nvalue = ‹{v}›\n", "[http-basic.repo.example.org.password] ‹{hex:40}›\n", "[gitlab.example.org.token] ‹{v}›\n"},
		[]string{"[PublicKey]\nKey={HEX:32}\n", "[Cache]\nKey={hex:32}\n", "[General]\nName={hex:32}\n", "[http-basic.repo.example.org.username] ci-{hex:12}\n", "[app.auth.password] checked\n", "[worker.token] refreshed for 3 users\n"}},
	{"table of an insert", []string{"INSERT INTO authtoken_token VALUES('‹{hex:40}›','2026-01-03 09:00:00',1);\n", "insert into `api_tokens` values (1,'‹{v}›'),(2,'‹{v}›');\n"},
		[]string{"INSERT INTO builds VALUES('{hex:40}',1);\n", "INSERT INTO token_usage VALUES('{hex:40}',1);\n", "INSERT INTO tokens VALUES(1,'2026-01-03 09:00:00','read write');\n", "INSERT INTO tokens VALUES('{u}');\n"}},
	{"codes below a title", []string{"Backup codes of anna, 2026\n‹{hex:5}7-{hex:6}›\n‹{hex:5}7-{hex:6}›\n", "PAPER KEY v2\nid: 2 / e147fb b7558c / 93 - 81\n 1: ‹{hex:6} {hex:6} {hex:6} {hex:6} {hex:6} {hex:6}› - 7d\n 2: ‹{hex:6} {hex:6} {hex:6} {hex:6} {hex:6} {hex:6}› - 0a\n",
		"A recovery key has been made for this disk:\n\n    🔐 ‹vbhtcjdn-kruhgbkc-ntvdkjrl-hcgtivgd-bnkrcttf-jduhlgbv-kchtrdgn-vdkjbhtc›\n"},
		[]string{"Recovery codes were not saved\ncommit 12 of 14\n2026-02-01 {hex:40}\n", "Recovery codes:\nnone\nbuild 4711\n{hex:12}\n", "A recovery key has been made for this disk:\n\n    🔐 keep-this-file-in-a-safe-place-and-never-lose-it\n"}},
	{"tongues", []string{"A senha é ‹K7QXW2M9ZT›\n", "Het wachtwoord is gewijzigd in ‹{alnum:14}77›\n", "新しいパスワードは「‹{p}›」です。\n", "密码为:‹{p}›\n", "密码是 ‹{p}›。请保存\n", "初始密码为 ‹{p}›，请尽快修改\n", "비밀번호는 ‹{p}›\n", "Ditt engångslösenord: ‹204096›\n", "Ihr Einmalpasswort: ‹582914›\n"},
		[]string{"Het wachtwoord is opgeslagen in Kluis2\n", "パスワードは8文字以上です\n", "密码为空\n", "密码是空的，请设置\n", "The password is stored in Vault2024\n", "password on nas2 is required\n", "{\"one_time_password\": 582914}\n", "Passwort: \"mindestens acht Zeichen\"\n", "mot de passe: \"au moins huit lettres\"\n", "contraseña: 'ocho letras como minimo'\n"}},
	{"digits of networks", []string{"    Key Content            : ‹65838619525610452959›\n", "default_wpakey=‹05178026›\n", "wpa_passphrase=‹Schrauben lybtsg 333›\n", "Pass \"‹ycxs vqof xrbn uctm›\"\n", ": RSA host.pem \"‹hkqqeq uaytykd gmbun›\"\n"},
		[]string{"    Key Content            : Absent\n", "wpa_key=12345678\n", "wpa_passphrase=not set\n", "passphrase: wrong on line 12\n", "Pass \"read the text again\"\n", "host key: RSA 2048 {hex:32}\n"}},
	{"users of addresses", []string{"ss://‹Y2hhY2hhMjAtaWV0Zi1wb2x5/nXPlmMJtGLYlJwbf/y8oEbEiK3Uf›@192.0.2.8:8388#a\n", "vless://‹{u}›@edge.example.org:443?sni=x\n", "trojan://‹{alnum:18}77›@edge.example.org:443\n"},
		[]string{"s3://{lower:18}/path/file@2\n", "docker://registry.example.org/team/image@sha256:{hex:64}\n", "https://edge.example.org/{alnum:24}/x@y\n"}},
	{"no secrets", []string{"Access secret: ‹{v}›\n", "salted_secret: ‹{v}›\n"},
		[]string{"password: Option<Zeroizing<String>>,\n", "secret: HashMap<String, Vec<u8>>,\n", "hashed_secret {hex:40}\n", "SHA256PasswordSalt={HEX:32}\n", "Cookie: _ga=GA1.2.427561009.2507863895; theme=dark\n", "$ bitcoin-cli dumpprivkey bc1q{lower:30}{digit:8}\n",
			"secret key in minisign.key\nuntrusted comment: minisign public key\nRW{base64:54}\n"}},
	{"few digits", []string{"admin PIN: ‹{digit:5}›\n", "Your one-time code is ‹{digit:6}›. It expires soon\n", "otp=‹{digit:6}›\n", "{\"pin_code\":\"‹{digit:6}›\"}\n", "Debugger PIN: ‹{digit:3}-{digit:3}-{digit:3}›\n", "Alarm code ‹{digit:5}›\n",
		"<string name=\"pin\">‹{digit:5}›</string>\n"},
		[]string{"pin: 17\n", "exit code: 482193\n", "error code is 482193\n", "postal code: 10115\n", "{\"pin\": 4711}\n", "mapping 4711\n", "pin: 2026-02-11\n", "otp=123456\n", "encode 48219\n", "pin: v1.2.3\n"}},
	{"licence", []string{"Serial number (Acme): ‹A1{HEX:4}-B2{HEX:4}-C3{HEX:4}-D4{HEX:4}›\n", "License: ‹A1B{HEX:2}-C3D{HEX:2}-E5F{HEX:2}-A7B{HEX:2}-C9D{HEX:2}›\n", "product key ‹A1B{HEX:2}-C3D{HEX:2}-E5F{HEX:2}-A7B{HEX:2}-C9D{HEX:2}›\n"},
		[]string{"license: MIT-0\n", "serial: {upalnum:12}\n", "License device id: A1B2C3D-A1B2C3D-A1B2C3D-A1B2C3D\n", "A1B2C-3D4E5-F6A7B-8C9D0-E1F2A\n", "serial 2026-0212-1234-5678\n"}},
	{"sentence", []string{"Ihr neues Passwort lautet: ‹{p}›\n", "the root password on nas2 is ‹{p}›, ask me\n", "Mot de passe provisoire : ‹{p}›\n", "sure, the pw is ‹{p}›\n", "creds for grafana -> admin / ‹{p}›\n", "Votre jeton d'accès : ‹{hex:40}›\n"},
		[]string{"password hash function: argon2id\n", "the password for bob is stored in vault-2024\n", "token type is Bearer2\n", "token request id: {hex:32}\n", "the token for bob: expired 2 days ago\n", "pw is too short\n", "PWD=/home/bob/x1\n"}},
	{"small letters", []string{"password=‹xqzvkjwp›\n", "sv_password \"‹xqzvkjwp›\"\n", "enable password ‹xqzvkjwp›\n", "secret: ‹xqzvkjwp›\n", "{user: \"x\", pass: \"‹xqzvkjwp›\"}\n"},
		[]string{"password: authentication\n", "secret: webhook\n", "secret: keycloak\n", "secret: letsencrypt\n", "token: xqzvkjwp\n", "password  required\n", "password: dropbox\n", "API_KEY=PUBLISHED\n"}},
	{"words", []string{"passphrase: ‹correct horse battery staple›\n", "password: ‹walnut-tunnel-mercy-orbit›\n", "BORG_PASSPHRASE='‹five dull otters juggle lamps›'\n"},
		[]string{"passphrase: asked for at the start\n", "password: my-app-db-credentials\n", "password: prod-db-user-password\n", "passphrase: not set\n"}},
	{"hidden", []string{" key 7 ‹082245{HEX:10}4541›\n", "enable password 7 ‹082245{HEX:10}4541›\n"}, []string{" key 7 times\n", "key 7 of 12\n"}},
	{"copied", []string{"COPY public.users (id, api_token) FROM stdin;\n1\t‹{hex:32}›\n2\t‹{hex:32}›\n"}, []string{"COPY public.users (id, commit) FROM stdin;\n1\t{hex:32}\n"}},
	{"data", []string{"apiVersion: v1\ndata:\n  x: ‹{alnum:24}›\nkind: Secret\n"}, []string{"apiVersion: v1\ndata:\n  username: YXBwdXNlcg==\nkind: Secret\n"}},
	{"continued", []string{"export DB_PASSWORD=\"\\\n‹{v}›\"\n"}, []string{"export DB_PASSWORD=\"\\\n$PASS\"\n"}},
	{"key material", []string{"CLIENT_RANDOM {hex:64} ‹{hex:96}›\n", "bob:1104:aad3b435b51404eeaad3b435b51404ee:‹{hex:32}›:::\n", "* NTLM     : ‹{hex:32}›\n"}, []string{"RANDOM {hex:64} {hex:96}\n", "NTLM: enabled\n"}},
	{"arguments", []string{"net use Z: \\\\fs1\\x ‹{p}› /user:bob\n", "mc alias set m https://h.example.org ‹{v}› ‹{v}›\n", "https://h.example.org/invite/‹{v}›\n", "dig -y ddns:‹{v}› example.org AXFR\n"},
		[]string{"net use Z: \\\\fs1\\x /persistent:yes\n", "alias set to the new name 2\n", "https://h.example.org/invite/friends\n", "apt-get -y install:all\n"}},
	{"variable", []string{"SYNC_TOKEN=‹{alnum:32}›\n", "export PAGE_TOKEN='‹{alnum:32}›'\n", "CURSOR_TOKEN: ‹{alnum:32}›\n", "WEBHOOK_SIGNING=\"‹{base64url:27}=›\"\n", "AUTH_SALT=‹{alnum:22};{alnum:20}*{alnum:20}›\n", "cfgPass = \"‹qzxkvw{digit:2}›\"\n"},
		[]string{"sync_token={alnum:32}\n", "nextPageToken: {alnum:32}\n", "PAD_TOKEN=<pad>\n", "MAX_TOKENS=4096\n", "CODE_SIGNING=required\n", "cfgPass = \"second1\"\n", "SYNC_TOKEN=$(cat token)\n"}},
	{"wide", []string{"│ id │" + strings.Repeat(" ", 50) + "password" + strings.Repeat(" ", 50) + "│ age │\n├────┼──────┼─────┤\n│ 1  │ ‹{hex:100}› │ 12 │\n", "| user |" + strings.Repeat(" ", 90) + "token" + strings.Repeat(" ", 90) + "|\n| anna | ‹{alnum:40}› |\n"},
		[]string{"│ id │" + strings.Repeat(" ", 50) + "digest" + strings.Repeat(" ", 50) + "│ age │\n│ 1  │ {hex:100} │ 12 │\n"}},
	{"bytes", []string{"network_key: [‹14, 147, 81, 36, 83, 200, 25, 31, 62, 34, 88, 7, 44, 92, 48, 60›]\n", "master_key = [‹0x0c, 0x90, 0x11, 0x7f, 0x33, 0xe2, 0x51, 0x6a, 0x08, 0x99, 0xab, 0x41, 0x5c, 0xd2, 0x77, 0x01›]\n", "network_key: [‹01, 03, 95, 07, 49, 11, 13, 85, 00, 22, 84, 66, 38, 10, 72, 14›]\n"},
		[]string{"{\"network_key\": [14, 147, 81, 36, 83, 200, 25, 31, 62, 34, 88, 7, 44, 92, 48, 60]}\n", "network_key: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]\n", "key_sizes: [128, 192, 256]\n"}},
	{"signed address", []string{"https://h.example.org/f.zip?st=‹{alnum:22}›&e=1795600000\n"}, []string{"https://h.example.org/f?st=running&e=1\n", "https://h.example.org/f?st=2026-11-25T10%3A00%3A00Z\n", "test?st={alnum:22}\n"}},
	{"code", []string{"Votre code de vérification est ‹{digit:6}›.\n", "Je code is ‹{digit:6}›\n", "Ihr Code lautet: ‹{digit:6}›\n", "{\"text\":\"Your code is ‹{digit:6}›\"}\n", "Enter this code on your phone: ‹48392165›\n", "$ oathtool --totp -b ‹{base32:32}›\n‹482916›\n", "$ pass otp github\n‹482916›\n"},
		[]string{"Votre code postal est 75011\n", "Your code coverage is 8125\n", "Your code returned 50312\n", "error code is 104512\n", "$ wc -l otp.csv\n482916 otp.csv\n", "$ date +%s # totp\nnow\n"}},
	{"still", []string{"Het wifi-wachtwoord voor gasten is nog steeds ‹zomerq{digit:4}huis›.\n", "The guest password is still ‹{p}› for now\n", "Das Passwort lautet weiterhin ‹{p}›\n", "Le mot de passe est toujours ‹{p}›\n"},
		[]string{"The guest password is still valid for 30 days\n", "Das Passwort ist noch immer dasselbe\n", "Le mot de passe est toujours obligatoire\n", "the password is still required by web-7f9c8d4b2k\n"}},
	{"licence block", []string{"----- BEGIN LICENSE -----\nIda Kelp\nSingle User License\nEA7E-338467\n‹{HEX:8} {HEX:8} {HEX:8} {HEX:8}›\n‹{HEX:8} {HEX:8} {HEX:8} {HEX:8}›\n------ END LICENSE ------\n"},
		[]string{"----- BEGIN LICENSE -----\nPermission is hereby granted to use this free of charge\n----- END LICENSE -----\n", "begin license check\n{hex:8} ok\n"}},
	{"generated", []string{"$ nsc generate nkey --account\n‹SA{base32:56}›\nA{base32:55}\n", "$ nk -gen user\nnkey seed: ‹SU{base32:56}›\n", "INSERT INTO `oauth_clients` VALUES (1,NULL,'Kelp Client','‹{alnum:40}›',NULL,'http://localhost'),(2,NULL,'iOS','‹{alnum:40}›','users');\n", "setup: [‹MT:{base32:17}-5›]\n", "ipmitool -U ADMIN -P ‹94E621E19E› sol activate\n"},
		[]string{"nkey: U{base32:55}\n", "INSERT INTO `clients` VALUES (1,'Kelp','{alnum:40}');\n", "FORMAT:{base32:19}\n", "-P 1.5E10 x\n", "login to wandb: saved in wandb/run-20261125_093012-{alnum:8}\n", "mapbox_secret: none\nmapbox_public: pk.eyJ1{base64url:60}.{base64url:22}\n"}},
	{"accounts", []string{"$ cat /etc/postfix/sasl_passwd\n[smtp.example.org]:587 ida@example.org:‹{p}›\n[mail.example.org]:465    bo@example.org:‹{p}›\n\nBob:{alnum:10}9?\n", "$ sudo cat /etc/pgbouncer/userlist.txt\n\"app\" \"‹{p}›\"\n\"etl\" \"‹{p}›\"\n$ ls\nx {alnum:10}9\n",
		"# cat /etc/ppp/pap-secrets\n# client server secret\n\"ida@isp.example\" * \"‹{p}›\"\nbo * ‹{v}›\n"},
		[]string{"$ cat /etc/passwd\nida:x:1000:1000:Ida,,,:/home/ida:/bin/bash\n", "$ ls /run/secrets\nsmtp web-7f9c8d4b2k\n", "$ cat docs/tokens\nthe list of tokens is in web-7f9c8d4b2k\nhttps://h.example.org/a:80\n", "$ cat /etc/postfix/sasl_passwd\nsmtp.example.org ida:\n"}},
	{"jwk", []string{"{\"kty\":\"EC\",\"d\":\"‹{v}{v}›\"}\n"}, []string{"{\"d\":\"M12 2L3 4z\"}\n"}},
}

var templates = regexp.MustCompile(`\{\w+:\d+\}`)

var anyPlaceholder = regexp.MustCompile(`\[REDACTED:[A-Za-z0-9_.:-]+\]`)

// expandMarked fills in the templates of a row; each has another value.
func expandMarked(t testing.TB, text string, seed uint64) string {
	t.Helper()
	fill := strings.NewReplacer("{v}", "{alnum:24}", "{p}", "Zu{lower:5}{digit:4}?x", "{u}", "{hex:8}-{hex:4}-4{hex:3}-a{hex:3}-{hex:12}")
	return templates.ReplaceAllStringFunc(fill.Replace(text), func(m string) string {
		out, err := ExpandTemplate(m, seed)
		if err != nil {
			t.Fatal(err)
		}
		seed++
		return out
	})
}

// expandForm is the text of a row without its marks.
func expandForm(t testing.TB, text string, seed uint64) string {
	return strings.NewReplacer("‹", "", "›", "").Replace(expandMarked(t, text, seed))
}

// TestForms: each row holds, in one piece and byte by byte, and a second time.
func TestForms(t *testing.T) {
	check := func(form, text string) {
		t.Helper()
		text = expandMarked(t, text, 11)
		in := strings.NewReplacer("‹", "", "›", "").Replace(text)
		got := filterAll(t, testSet(t, Config{}), in)
		masked := text
		for {
			before, rest, ok := strings.Cut(masked, "‹")
			if !ok {
				break
			}
			_, after, _ := strings.Cut(rest, "›")
			masked = before + "[REDACTED]" + after
		}
		if anyPlaceholder.ReplaceAllString(got, "[REDACTED]") != masked {
			t.Errorf("%s: %q\ngot  %q\nwant %q", form, in, got, masked)
			return
		}
		if cut := filterCuts(t, testSet(t, Config{}), in, 1); cut != got {
			t.Errorf("%s: %q byte by byte\ngot  %q\nwant %q", form, in, cut, got)
		}
		if twice := filterAll(t, testSet(t, Config{}), got); twice != got {
			t.Errorf("%s: a second time\ngot  %q\nwant %q", form, twice, got)
		}
	}
	for _, r := range formRows {
		if len(r.yes) == 0 || len(r.no) == 0 {
			t.Errorf("%s: a row needs texts of both kinds", r.form)
		}
		for _, text := range append(r.yes, r.no...) {
			check(r.form, text)
		}
	}
}
