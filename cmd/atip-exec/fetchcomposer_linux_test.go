package main_test

import (
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// newPackagist is a repository of composer on the machine's loopback: two, and plug, a plugin that speaks
// to it as soon as it is installed.
func newPackagist(t *testing.T) *registry {
	t.Helper()
	two := zipped(t, "", map[string]string{"composer.json": `{"name":"acme/two"}`, "src/two.php": "<?php const TWO = 2;\n"})
	plug := zipped(t, "", map[string]string{"composer.json": `{"name":"acme/plug"}`, "src/Plug.php": `<?php
namespace Acme;
class Plug implements \Composer\Plugin\PluginInterface {
	public function activate(\Composer\Composer $c, \Composer\IO\IOInterface $io) { @file_get_contents(getenv('REGISTRY') . '/from-plugin'); file_put_contents('order', "plugin\n", FILE_APPEND); }
	public function deactivate(\Composer\Composer $c, \Composer\IO\IOInterface $io) {}
	public function uninstall(\Composer\Composer $c, \Composer\IO\IOInterface $io) {}
}
`})
	return serve(t, func(r *registry, w http.ResponseWriter, q *http.Request) {
		switch q.URL.Path {
		case "/packages.json":
			_, _ = w.Write([]byte(`{"packages":{"acme/two":{"1.0.0":{"name":"acme/two","version":"1.0.0","dist":{"type":"zip","url":"` + r.URL + `/two.zip"},"autoload":{"files":["src/two.php"]}}},
"acme/plug":{"1.0.0":{"name":"acme/plug","version":"1.0.0","type":"composer-plugin","require":{"composer-plugin-api":"^2.0"},"dist":{"type":"zip","url":"` + r.URL + `/plug.zip"},
"autoload":{"psr-4":{"Acme\\":"src/"}},"extra":{"class":"Acme\\Plug"}}}}}`))
		case "/two.zip":
			_, _ = w.Write(two)
		case "/plug.zip":
			_, _ = w.Write(plug)
		default:
			http.NotFound(w, q)
		}
	})
}

// TestFetchApartComposer: composer installs what its lock declares without a question. The packages come
// before a script of the project or a plugin runs; then nothing reaches the repository.
func TestFetchApartComposer(t *testing.T) {
	t.Parallel()
	needTier3(t)
	if _, err := exec.LookPath("composer"); err != nil {
		t.Skip("composer is not installed")
	}
	w, r := newWorldAtHome(t), newPackagist(t)
	w.policy(`{"version":1,"network":{"allow":["` + strings.TrimPrefix(r.URL, "http://") + `"]},"env":{"pass":["REGISTRY"]}}`)
	start := startsIn([]string{"HOME=" + w.home, "PATH=/usr/local/bin:/usr/bin:/bin:" + bin, "REGISTRY=" + r.URL, "COMPOSER_ALLOW_SUPERUSER=1"})
	plain := func(words ...string) (string, error) {
		cmd := exec.Command("composer", words...)
		cmd.Dir = w.ws
		return start(cmd)
	}
	manifest := `{"name":"acme/m","repositories":[{"type":"composer","url":"` + r.URL + `"},{"packagist.org":false}],"require":{"acme/two":"1.0.0","acme/plug":"1.0.0"},
"config":{"secure-http":false,"allow-plugins":{"acme/plug":true}},"scripts":{"post-install-cmd":"echo script >>order; php -r '@file_get_contents(getenv(\"REGISTRY\") . \"/from-script\");'"}}`
	put(t, w.ws, map[string]string{"composer.json": manifest, "test.php": "<?php require 'vendor/autoload.php'; echo TWO + 40, \"\\n\";\n"})
	if out, err := plain("update", "-n", "--no-install", "--no-plugins", "--no-scripts"); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	raw, err := os.ReadFile(w.ws + "/composer.lock")
	if err != nil {
		t.Fatal(err)
	}
	lock := string(raw)
	cold := func() {
		for _, dir := range []string{w.home + "/.cache", w.home + "/.config/composer", w.home + "/.local/share/composer", w.ws + "/vendor", w.ws + "/order"} {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
		put(t, w.ws, map[string]string{"composer.json": manifest, "composer.lock": lock})
		r.paths()
	}
	order := func() string {
		raw, err := os.ReadFile(w.ws + "/order")
		if err != nil {
			return err.Error()
		}
		return string(raw)
	}
	for _, cmd := range []string{"composer install && php test.php", "composer install --no-interaction --prefer-dist --no-progress -q; php test.php"} {
		cold()
		out, err := start(w.command("-c", cmd))
		if asked := r.paths(); err != nil || !strings.Contains(out, "42") || !slices.Contains(asked, "/plug.zip") || slices.ContainsFunc(asked, func(p string) bool { return strings.HasPrefix(p, "/from-") }) {
			t.Errorf("%s: %v, asked for %v\n%s", cmd, err, asked, out)
		}
		if got := order(); got != "plugin\nscript\n" {
			t.Errorf("%s: %q", cmd, got)
		}
		if after, err := os.ReadFile(w.ws + "/composer.lock"); err != nil || string(after) != lock {
			t.Errorf("composer.lock has changed: %v %s", err, after)
		}
	}
	// Unconfined both reach it, and the plugin also without scripts.
	for _, words := range [][]string{{"install", "-n"}, {"install", "-n", "--no-scripts"}} {
		cold()
		if out, err := plain(words...); !slices.Contains(r.paths(), "/from-plugin") {
			t.Errorf("control %v: %v %s", words, err, out)
		}
	}
	splitOrAsk(t, w.ws, []fetchRow{
		{"as it is", "composer.lock", lock, "composer install", false},
		{"options that change nothing", "composer.lock", lock, "composer i -n --no-dev -o", false},
		{"no lock", "composer.lock", "", "composer install", true},
		{"another host", "composer.lock", strings.Replace(lock, r.URL, "https://evil.example", 1), "composer install", true},
		{"a package of a path", "composer.lock", strings.Replace(lock, `"zip"`, `"path"`, 1), "composer install", true},
		{"sources", "composer.lock", lock, "composer install --prefer-source", true},
		{"another directory", "composer.lock", lock, "composer install -d ..", true},
		{"a manifest in a variable", "composer.lock", lock, "COMPOSER=x.json composer install", true},
		{"a lock that the string writes", "composer.lock", lock, "echo >composer.lock; composer install", true},
		{"a package in the words", "composer.lock", lock, "composer require acme/two", true},
		{"an update, plugins of the project included", "composer.lock", lock, "composer update --no-scripts", true},
	}, cold, func(cmd string) (string, error) { return start(w.command("explain", "-o", "text", "-c", cmd)) })

}
