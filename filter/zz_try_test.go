package filter

import "testing"
import "strings"
import "regexp"

func TestTry(t *testing.T) {
	fill := strings.NewReplacer("{v}", "{alnum:24}", "{p}", "Zu{lower:5}{digit:4}?x", "{u}", "{hex:8}-{hex:4}-4{hex:3}-a{hex:3}-{hex:12}")
	re := regexp.MustCompile(`\{\w+:\d+\}`)
	for _, text := range strings.Split(tries, "\n~\n") {
		seed := uint64(31)
		text = re.ReplaceAllStringFunc(fill.Replace(text), func(m string) string { o, e := ExpandTemplate(m, seed); if e != nil { t.Fatal(e) }; seed++; return o })
		in := strings.NewReplacer("‹", "", "›", "").Replace(text)
		got := filterAll(t, testSet(t, Config{}), in)
		want := regexp.MustCompile(`‹[^›]*›`).ReplaceAllString(text, "[R]")
		if g := regexp.MustCompile(`\[REDACTED:[A-Za-z0-9_.:-]+\]`).ReplaceAllString(got, "[R]"); g != want {
			t.Errorf("\ngot  %s\nwant %s", g, want)
		}
	}
}

const tries = `password⇒‹{v}›
~
password=>"‹{v}›"
~
val apiToken: String by lazy { "‹{v}›" }
~
private static final String API_KEY = "‹{v}›";
~
const (
	dbPassword string = "‹{p}›"
)
~
let token = String::from("‹{v}›");
~
std::string secret{"‹{v}›"};
~
#define API_SECRET "‹{v}›"
~
(setq api-token "‹{v}›")
~
(def db-password "‹{p}›")
~
{:password "‹{p}›"}
~
api_key: "‹{v}›",
~
local password <const> = "‹{p}›"
~
Dim password As String = "‹{p}›"
~
password := "‹{p}›"
~
SET @password = '‹{p}›';
~
ALTER USER bob WITH ENCRYPTED PASSWORD '‹{p}›';
~
ALTER USER 'bob'@'%' IDENTIFIED BY '‹{p}›';
~
CREATE LOGIN bob WITH PASSWORD = N'‹{p}›';
~
CREATE SECRET s (TYPE s3, KEY_ID 'x', SECRET '‹{v}›');
~
UPDATE users SET password='‹{p}›' WHERE id=1;
~
INSERT INTO "users" ("id","name","password_hash") VALUES (1,'bob','‹{v}›'),(2,'ann','‹{v}›');
~
 name | api_key 
------+---------
 bob  | ‹{v}›
(1 row)
~
+------+--------------------------+
| user | secret                   |
+------+--------------------------+
| bob  | ‹{v}› |
+------+--------------------------+
~
NAME   NAMESPACE   TOKEN
a      default     ‹{v}›
~
Array
(
    [host] => db
    [password] => ‹{p}›
)
~
array(2) {
  ["host"]=>
  string(2) "db"
  ["password"]=>
  string(13) "‹{p}›"
}
~
$VAR1 = {
          'password' => '‹{p}›',
          'user' => 'bob'
        };
~
{'user': 'bob', 'password': '‹{p}›'}
~
Credentials(user='bob', password='‹{p}›')
~
%{password: "‹{p}›", user: "bob"}
~
#<struct Config password="‹{p}›">
~
Config { user: "bob", password: Secret("‹{v}›") }
~
map[password:‹{p}› user:bob]
~
{Host:db Password:‹{p}› Port:5432}
~
[{password,"‹{p}›"},{user,"bob"}]
~
{"ParameterKey":"DbPassword","ParameterValue":"‹{v}›"}
~
{"key":"auth_token","type":"string","value":"‹{v}›"}
~
  environment:
    - name: API_TOKEN
      value: "‹{v}›"
~
          env:
            - name: DB_PASS
              value: ‹{p}›
~
<property name="hibernate.connection.password">‹{p}›</property>
~
<Setting Name="ApiKey" Value="‹{v}›" />
~
<setting name="Password" serializeAs="String">
  <value>‹{p}›</value>
</setting>
~
<entry key="db.password">‹{p}›</entry>
~
<string name="api_key">‹{v}›</string>
~
<dict><key>APIToken</key><string>‹{v}›</string></dict>
~
Name=API_TOKEN Value=‹{v}›
~
["docker","run","-e","DB_PASSWORD=‹{p}›","app"]
~
["app", "--api-key", "‹{v}›", "--port", "80"]
~
args: ["--db-password=‹{p}›"]
~
  args:
    - --db-password
    - ‹{p}›
~
wpa_supplicant: psk="‹{p}›"
~
masterauth ‹{v}›
~
proxy_set_header Authorization "Bearer ‹{v}›";
~
bindpw ‹{p}›
~
olcRootPW: ‹{p}›
~
rootpw ‹{v}›
~
smtp_password = ‹{p}›
~
password "‹{p}›"
~
-Djavax.net.ssl.keyStorePassword=‹{p}›
~
--storepass ‹{p}› --keypass ‹{p}›
~
az login --service-principal -u app -p ‹{v}› --tenant t
~
mysql --password=‹{p}› db
~
PGPASSWORD=‹{p}› psql -h db
~
curl -d 'grant_type=password&password=‹{v}›&user=bob' https://h/
~
curl -H "X-Vault-Token: ‹{v}›" https://h/
~
GET /a?api_key=‹{v}›&x=1 HTTP/1.1
~
password%22%3A%22‹{v}›%22
~
{\"password\":\"‹{v}›\"}
~
&lt;password&gt;‹{v}›&lt;/password&gt;
~
"\u003cpassword\u003e‹{v}›\u003c/password\u003e"
~
-----
Your new password is: ‹{p}›
~
Generated root password: ‹{p}›
~
Admin password (save it now): ‹{p}›
~
Your API token is ‹{v}›
~
New token: ‹{v}›
~
Bearer token => ‹{v}›
~
Password set to ‹{p}›
~
[info] using secret key ‹{v}› for signing
~
- password: ‹{p}›
+ password: ‹{p}›
~
[31m-password=‹{p}›[0m
~
~ password = "‹{p}›" -> "‹{p}›"
~
      + token = "‹{v}›"
~
token | ‹{v}›
~
token    ‹{v}›
~
API Token    : ‹{v}›
~
Kennwort: ‹{p}›
~
Hasło: ‹{p}›
~
Senha: ‹{p}›
~
Lösenord: ‹{p}›
~
Heslo: ‹{p}›
~
Parola: ‹{p}›
~
비밀번호: ‹{p}›
~
암호: ‹{p}›
~
sha256: {hex:64}
~
cacheKey: "{hex:40}"
~
"etag": "{hex:32}"
~
token_type: Bearer
~
"tokenId": "{u}"
~
key_id = {hex:20}
~
request_id={u}
~
sort_key: {v}
~
password must contain 8 characters
~
Password: ********
~
--password-file /run/secrets/db
~
secretName: db-credentials-7f9c4b
~
serviceAccountToken: {}
~
passwordSecretRef: { name: db-4f2a9c1e7b, key: password }
~
"token": null,
~
public_key = "{v}{v}"
~
ssh-key fingerprint: SHA256:{alnum:43}
~
idempotency-key: {u}
~
primary_key: {u}
~
Пароль: забыли
~
パスワード: パスワードを忘れた
~
Passwort: Geheimnis2
~
token count: 123456
~
author: bob
~
monkey: {v}
~
keyboard=us-{hex:12}
`
