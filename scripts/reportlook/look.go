package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// look opens the page and uses it as a person would, by mouse and by keyboard.
func look(program, page, out string, rows int, broken bool) error {
	path, err := filepath.Abs(page)
	if err != nil {
		return err
	}
	b, err := open(program)
	if err != nil {
		return err
	}
	defer b.close()
	address := (&url.URL{Scheme: "file", Path: path}).String()
	if err := b.call("Page.navigate", map[string]any{"url": address}, nil); err != nil {
		return err
	}
	if err := b.until("the page is shown", `document.readyState === "complete" && document.getElementById("shown") && document.getElementById("shown").textContent`); err != nil {
		return errors.Join(err, errors.New(strings.Join(b.trouble, "\n")))
	}
	for _, step := range []func(*browser, string, int, bool) error{opens, pictures, filters, expands, keyboard, reads} {
		if err := step(b, out, rows, broken); err != nil {
			return err
		}
	}
	var dom string
	if err := b.eval(`document.querySelectorAll("script.records").forEach((e) => e.remove()), document.documentElement.outerHTML`, &dom); err != nil {
		return err
	}
	if err := os.WriteFile(out+".dom.html", []byte(dom), 0o644); err != nil {
		return err
	}
	if strings.Contains(dom, "<img") || strings.Contains(dom, "onerror=\"") || strings.Contains(dom, "\u202e") {
		return errors.New("a hostile name became part of the page")
	}
	if len(b.trouble) > 0 {
		return errors.New("the page complained: " + strings.Join(b.trouble, "\n"))
	}
	return nil
}

// is fails unless an expression has a value.
func (b *browser) is(what, expression string, want any) error {
	var got any
	if err := b.eval(expression, &got); err != nil {
		return err
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		return fmt.Errorf("%s: %s is %v instead of %v", what, expression, got, want)
	}
	return nil
}

// listed is how many rows the status line says are shown.
const listed = `Number(document.getElementById("shown").textContent.split(" ")[0].replaceAll(",", ""))`

func opens(b *browser, _ string, rows int, broken bool) error {
	return errors.Join(
		b.is("all rows", listed, rows),
		b.is("the totals", `[...document.querySelectorAll("#totals dd")].slice(0, 5).reduce((s, e) => s + Number(e.textContent), 0)`, rows),
		b.is("rows drawn", `document.querySelectorAll("#list tr.row").length`, min(rows, 200)),
		b.is("chain", `document.getElementById("chain").classList.contains("broken")`, broken),
		b.is("bars", `document.querySelectorAll("#chart rect").length > 0`, true),
		b.is("hostile names", `"broken" in window`, false))
}

func pictures(b *browser, out string, _ int, _ bool) error {
	return errors.Join(b.picture(out+".light.png", "light", 1500), b.picture(out+".dark.png", "dark", 1500), b.picture(out+".narrow.png", "light", 420), b.picture(out+".light.png", "light", 1500))
}

// fill sets a control and tells the page.
func fill(id, value, event string) string {
	return `(() => { const e = document.getElementById(` + strconv.Quote(id) + `); e.value = ` + strconv.Quote(value) + `; e.dispatchEvent(new Event("` + event + `", { bubbles: true })); })()`
}

func filters(b *browser, _ string, rows int, _ bool) error {
	tenth := rows / 10
	only := func(what, act string, want int) error {
		if err := b.eval(act, nil); err != nil {
			return err
		}
		if err := b.until(what+": "+strconv.Itoa(want)+" rows", listed+" === "+strconv.Itoa(want)); err != nil {
			return err
		}
		if err := b.eval(`document.querySelector("#filter button[type=reset]").click()`, nil); err != nil {
			return err
		}
		return b.until("all rows again", listed+" === "+strconv.Itoa(rows))
	}
	uncheck := func(keep string) string {
		return `document.querySelectorAll("input[name=decision]").forEach((e) => { if (e.checked !== (e.value === ` + strconv.Quote(keep) + `)) e.click(); })`
	}
	return errors.Join(
		only("search", fill("q", "rm -rf", "input"), tenth),
		only("search for a rule", fill("q", "BUILTIN/root_tree", "input"), tenth),
		only("search for a host", fill("q", "registry.npmjs.org", "input"), tenth),
		only("denied", uncheck("deny"), tenth),
		only("approved", uncheck("approved"), tenth),
		only("approval required", uncheck("ask"), tenth),
		only("effect", fill("effect", "remoteMutation", "change"), 2*tenth),
		only("redactions", fill("with", "rd", "change"), tenth),
		only("refused starts", fill("with", "rs", "change"), tenth),
		only("session", fill("session", "s:session-0", "change"), min(rows, 2500)),
		only("nothing", fill("q", "no such command", "input"), 0))
}

func expands(b *browser, out string, rows int, _ bool) error {
	steps := []error{
		b.eval(fill("q", "git push", "input"), nil),
		b.until("the refused push alone", listed+" === "+strconv.Itoa(rows/10)),
		b.eval(`document.querySelector("#list button.command").click()`, nil),
		b.until("the record is unpacked", `document.querySelector("tr.detail .step")`),
		b.is("the button says so", `document.querySelector("#list button.command").getAttribute("aria-expanded")`, "true"),
		b.is("and names what it opened", `document.getElementById(document.querySelector("#list button.command").getAttribute("aria-controls")).className`, "detail"),
		b.is("the whole record", `JSON.parse(document.querySelector("tr.detail pre").textContent).decision.action`, "confirm"),
		b.eval(`document.querySelector("tr.detail").previousElementSibling.scrollIntoView()`, nil),
		b.picture(out+".open.light.png", "light", 1500),
		b.picture(out+".open.dark.png", "dark", 1500),
		b.eval(`document.querySelector("#list button.command").click()`, nil),
		b.is("closed again", `document.querySelector("tr.detail").hidden`, true),
		b.eval(`document.querySelector("#filter button[type=reset]").click()`, nil),
		b.until("all rows again", listed+" === "+strconv.Itoa(rows)),
		// The last row of the newest block is another block than the first.
		b.eval(fill("order", "down", "change"), nil),
		b.eval(`document.querySelector("#list button.command").click()`, nil),
		b.until("the last record is unpacked", `document.querySelector("tr.detail pre")`),
		b.is("it is the one of its row", `JSON.parse(document.querySelector("tr.detail pre").textContent).argv.join(" ").includes(`+strconv.Quote("change "+strconv.Itoa(rows-1))+`)`, true),
		b.eval(fill("order", "up", "change"), nil),
	}
	if rows > 200 {
		steps = append(steps, b.eval(`document.getElementById("more").click()`, nil),
			b.is("more rows", `document.querySelectorAll("#list tr.row").length`, 400),
			b.is("focus goes on", `document.activeElement === document.querySelectorAll("#list button.command")[200]`, true))
	}
	return errors.Join(steps...)
}

// keyboard reaches the search and a row with the keys alone.
func keyboard(b *browser, _ string, _ int, _ bool) error {
	if err := b.eval(`window.scrollTo(0, 0), document.activeElement.blur(), document.querySelector("tr.detail") && document.querySelector("tr.detail").remove()`, nil); err != nil {
		return err
	}
	if err := b.eval(`document.querySelector(".skip").focus()`, nil); err != nil {
		return err
	}
	seen := map[string]bool{}
	for range 40 {
		var at string
		if err := b.eval(`document.activeElement.id || document.activeElement.name || document.activeElement.className || document.activeElement.tagName`, &at); err != nil {
			return err
		}
		seen[at] = true
		if at == "command" {
			break
		}
		if err := b.key("Tab", "Tab", "", 9); err != nil {
			return err
		}
	}
	for _, want := range []string{"skip", "q", "decision", "effect", "session", "with", "order", "commands", "command"} {
		if !seen[want] {
			return fmt.Errorf("the Tab key does not reach %s: %v", want, seen)
		}
	}
	if err := b.key("Enter", "Enter", "\r", 13); err != nil {
		return err
	}
	return b.until("Enter opens a row", `document.activeElement.getAttribute("aria-expanded") === "true" && document.querySelector("tr.detail pre")`)
}

// reads asks for what a screen reader is told.
func reads(b *browser, _ string, _ int, _ bool) error {
	var tree struct {
		Nodes []struct {
			Role struct{ Value string }
			Name struct{ Value any }
		}
	}
	if err := b.call("Accessibility.getFullAXTree", nil, &tree); err != nil {
		return err
	}
	names := map[string]bool{}
	for _, n := range tree.Nodes {
		name := fmt.Sprint(n.Name.Value)
		names[n.Role.Value] = true
		switch n.Role.Value {
		case "button", "combobox", "searchbox", "checkbox", "region", "search", "image":
			if name == "" || name == "<nil>" {
				return fmt.Errorf("a %s has no name for a screen reader", n.Role.Value)
			}
		}
	}
	for _, role := range []string{"main", "search", "searchbox", "table", "columnheader", "status", "heading", "image", "checkbox", "combobox"} {
		if !names[role] && !(role == "image" && names["img"]) {
			return fmt.Errorf("a screen reader finds no %s", role)
		}
	}
	return nil
}
