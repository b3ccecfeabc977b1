package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// browser speaks the DevTools protocol with one page over two pipes.
type browser struct {
	cmd     *exec.Cmd
	in      *os.File
	out     *bufio.Reader
	profile string
	session string
	last    int
	trouble []string // what the page complained about
}

// patience is for all of one page: 100,000 records on a busy machine.
const patience = 5 * time.Minute

func open(program string) (*browser, error) {
	profile, err := os.MkdirTemp("", "reportlook-profile-")
	if err != nil {
		return nil, err
	}
	b := &browser{profile: profile}
	toBrowser, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, fromBrowser, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	b.cmd = exec.CommandContext(ctx, program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--user-data-dir="+profile, "--remote-debugging-pipe", "about:blank")
	b.cmd.ExtraFiles = []*os.File{toBrowser, fromBrowser} // descriptors 3 and 4, as the protocol has it
	b.cmd.Cancel = func() error { defer cancel(); return b.cmd.Process.Kill() }
	b.in, b.out = in, bufio.NewReaderSize(out, 1<<20)
	if err := b.cmd.Start(); err != nil {
		return nil, err
	}
	toBrowser.Close()
	fromBrowser.Close()
	var made struct{ TargetID string }
	if err := b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &made); err != nil {
		return nil, err
	}
	var attached struct{ SessionID string }
	if err := b.call("Target.attachToTarget", map[string]any{"targetId": made.TargetID, "flatten": true}, &attached); err != nil {
		return nil, err
	}
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		if err := b.call(domain+".enable", nil, nil); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (b *browser) close() {
	_ = b.call("Browser.close", nil, nil)
	b.in.Close()
	_ = b.cmd.Wait()
	os.RemoveAll(b.profile)
}

// call sends one command and waits for its answer; events in between are noted.
func (b *browser) call(method string, params any, result any) error {
	b.last++
	msg := map[string]any{"id": b.last, "method": method}
	if params != nil {
		msg["params"] = params
	}
	if b.session != "" && !strings.HasPrefix(method, "Browser.") {
		msg["sessionId"] = b.session
	}
	raw, err := json.Marshal(msg)
	if err != nil {
		return err
	}
	if _, err := b.in.Write(append(raw, 0)); err != nil {
		return err
	}
	for {
		raw, err := b.out.ReadBytes(0)
		if err != nil {
			return fmt.Errorf("%s: the browser ended: %w", method, err)
		}
		var got struct {
			ID     int
			Method string
			Params json.RawMessage
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		if err := json.Unmarshal(raw[:len(raw)-1], &got); err != nil {
			return err
		}
		switch {
		case got.ID == b.last && got.Error != nil:
			return errors.New(method + ": " + got.Error.Message)
		case got.ID == b.last:
			if result == nil {
				return nil
			}
			return json.Unmarshal(got.Result, result)
		case got.Method == "Log.entryAdded" || got.Method == "Runtime.exceptionThrown" || got.Method == "Runtime.consoleAPICalled":
			b.trouble = append(b.trouble, string(got.Params))
		case got.Method == "Network.requestWillBeSent":
			var r struct{ Request struct{ URL string } }
			_ = json.Unmarshal(got.Params, &r)
			if !strings.HasPrefix(r.Request.URL, "file://") && !strings.HasPrefix(r.Request.URL, "blob:") {
				b.trouble = append(b.trouble, "request to "+r.Request.URL)
			}
		}
	}
}

// eval runs an expression, awaits it, and decodes its value.
func (b *browser) eval(expression string, value any) error {
	var got struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	if err := b.call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &got); err != nil {
		return err
	}
	if got.ExceptionDetails != nil {
		return fmt.Errorf("%s: %s", expression, got.ExceptionDetails)
	}
	if value == nil {
		return nil
	}
	return json.Unmarshal(got.Result.Value, value)
}

// until waits until an expression is true.
func (b *browser) until(what, expression string) error {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		var ok bool
		if err := b.eval("Boolean("+expression+")", &ok); err != nil {
			return err
		}
		if ok {
			return nil
		}
	}
	return errors.New("never so: " + what)
}

func (b *browser) key(name, code string, text string, vk int) error {
	for _, kind := range []string{"keyDown", "keyUp"} {
		params := map[string]any{"type": kind, "key": name, "code": code, "windowsVirtualKeyCode": vk}
		if kind == "keyDown" && text != "" {
			params["text"] = text
		}
		if err := b.call("Input.dispatchKeyEvent", params, nil); err != nil {
			return err
		}
	}
	return nil
}

func (b *browser) picture(file, scheme string, width int) error {
	if err := b.call("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme}}}, nil); err != nil {
		return err
	}
	if err := b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 1100, "deviceScaleFactor": 1, "mobile": false}, nil); err != nil {
		return err
	}
	var shot struct{ Data string }
	if err := b.call("Page.captureScreenshot", map[string]any{"format": "png"}, &shot); err != nil {
		return err
	}
	raw, err := base64.StdEncoding.DecodeString(shot.Data)
	if err != nil {
		return err
	}
	return os.WriteFile(file, raw, 0o644)
}
