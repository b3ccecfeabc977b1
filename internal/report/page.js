"use strict";
// Every text of a record reaches the page through textContent, and by way of visible():
// nothing here makes markup of a string.
(() => {
	const CHUNK = 200;
	const BINS = 60;
	const MIN_BINS = 12;
	const OUTCOMES = ["allow", "approved", "ask", "deny", "other"];
	const LABELS = { allow: "allowed", approved: "approved", ask: "approval required", deny: "denied", other: "other" };
	const SIGNS = { allow: "\u2713", approved: "\u2713", ask: "?", deny: "\u2715", other: "\u2022" };
	const KINDS = { nested: "said by a run inside", killed: "killed with the wrapper; how it ended is unknown", intent: "began; no record of its end" };
	const $ = (id) => document.getElementById(id);

	// visible shows what would be obeyed or not seen: control characters, marks of
	// direction, blanks of no width.
	const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u00a0\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]|\p{Mn}|\p{Me}|[\u{e0000}-\u{e0fff}]/gu;
	const visible = (s) => String(s).replace(hidden, (c) => "\\u{" + c.codePointAt(0).toString(16).toUpperCase() + "}");

	function el(name, props, ...children) {
		const e = document.createElement(name);
		for (const [k, v] of Object.entries(props || {})) {
			if (v !== undefined && v !== null && v !== false) e.setAttribute(k, v === true ? "" : v);
		}
		for (const c of children.flat()) {
			if (c === undefined || c === null || c === "") continue;
			e.append(c instanceof Node ? c : document.createTextNode(visible(c)));
		}
		return e;
	}

	// --- the rows, and the packed records behind them

	const rows = [];
	const packed = Array.from(document.querySelectorAll("script.records"));
	document.querySelectorAll("script.rows").forEach((block, b) => {
		JSON.parse(block.textContent).forEach((row, i) => {
			row.block = b;
			row.at = i;
			row.ms0 = Date.parse(row.t);
			rows.push(row);
		});
		block.remove();
	});
	rows.sort((a, b) => (a.t < b.t ? -1 : a.t > b.t ? 1 : 0));

	const unpacked = new Map();
	async function records(row) {
		let all = unpacked.get(row.block);
		if (!all) {
			const bytes = Uint8Array.from(atob(JSON.parse(packed[row.block].textContent)), (c) => c.charCodeAt(0));
			all = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
			unpacked.set(row.block, all);
			if (unpacked.size > 4) unpacked.delete(unpacked.keys().next().value);
		}
		return all[row.at];
	}

	// --- filter and search

	function haystack(row) {
		if (row.text === undefined) {
			const list = [row.c, row.p, row.id, row.s, row.a, row.e, row.m, row.k, LABELS[row.d], ...(row.r || []), ...(row.f || [])];
			for (const x of row.h || []) list.push(x.n);
			for (const x of row.w || []) list.push(x.n);
			row.text = list.filter(Boolean).join("\n").toLowerCase();
		}
		return row.text;
	}

	const failed = (row) => Boolean(row.e) || (row.x !== undefined && row.x !== 0);

	let shown = rows;
	let rendered = 0;

	function wanted() {
		const words = $("q").value.toLowerCase().split(/\s+/).filter(Boolean);
		const decisions = new Set(Array.from(document.querySelectorAll("input[name=decision]:checked"), (x) => x.value));
		const effect = $("effect").value;
		const session = $("session").value;
		const having = $("with").value;
		return (row) =>
			decisions.has(row.d) &&
			(!effect || (row.f || []).some((f) => f === effect || f === effect + "?")) &&
			(!session || "s:" + (row.s || "") === session) &&
			(!having || (having === "x" ? failed(row) : having === "w" ? row.w || (row.u && row.u.added + row.u.changed + row.u.removed) : row[having])) &&
			words.every((w) => haystack(row).includes(w));
	}

	function apply() {
		shown = rows.filter(wanted());
		if ($("order").value === "down") shown.reverse();
		$("list").tBodies[0].replaceChildren();
		rendered = 0;
		more();
		$("shown").textContent = shown.length.toLocaleString("en") + " of " + rows.length.toLocaleString("en") + " commands";
		chart();
	}

	// --- the list

	const named = (list) => (list || []).map((x) => el("div", { class: "small" }, el("code", null, x.n), x.h === "more" ? "" : el("span", { class: "quiet" }, " " + x.h)));
	const tag = (text, bad) => el("span", { class: bad ? "tag bad" : "tag" }, text);
	const plural = (n, one, many) => n.toLocaleString("en") + " " + (n === 1 ? one : many);

	function outcome(row) {
		const out = [];
		if (row.e) out.push(tag(row.e, true));
		if (row.x !== undefined) out.push(tag("exit " + row.x, row.x !== 0));
		if (row.rs) out.push(tag(plural(row.rs, "refused start", "refused starts"), true));
		if (row.ds) out.push(tag(plural(row.ds, "deferred start", "deferred starts")));
		if (row.dn) out.push(tag(plural(row.dn, "refusal", "refusals"), true));
		if (row.rd) out.push(tag(plural(row.rd, "redaction", "redactions")));
		if (row.ms >= 1000) out.push(tag((row.ms / 1000).toFixed(1) + " s"));
		return out;
	}

	function files(row) {
		const out = named(row.w);
		const u = row.u;
		if (u && u.added + u.changed + u.removed) out.push(el("div", { class: "small" }, u.added + " added, " + u.changed + " changed, " + u.removed + " removed"));
		return out;
	}

	function rowOf(row, n) {
		const button = el("button", { type: "button", class: "command", "aria-expanded": "false" }, row.c || "(no command recorded)");
		const tr = el("tr", { class: "row" },
			el("td", null, el("time", { datetime: row.t }, row.t.slice(11).replace(/(\.\d{3})?\d*Z$/, "$1"), " ", el("span", { class: "small" }, row.t.slice(0, 10)))),
			el("td", null, el("span", { class: "decision " + row.d }, SIGNS[row.d] + " " + LABELS[row.d]), KINDS[row.k] ? el("div", { class: "small quiet" }, KINDS[row.k]) : ""),
			el("td", null, button, row.m ? el("div", { class: "small" }, row.m) : "", el("div", { class: "small quiet" }, "in " + row.p)),
			el("td", null, (row.f || []).map((f) => tag(f))),
			el("td", null, named(row.h)),
			el("td", null, files(row)),
			el("td", null, outcome(row)));
		let detail = null;
		button.addEventListener("click", () => {
			const open = button.getAttribute("aria-expanded") !== "true";
			button.setAttribute("aria-expanded", String(open));
			tr.classList.toggle("open", open);
			if (!detail && open) {
				const cell = el("td", { colspan: "7", role: "cell" }, el("p", { role: "status" }, "Reading the record"));
				detail = el("tr", { class: "detail", id: "detail-" + n }, cell);
				button.setAttribute("aria-controls", detail.id);
				tr.after(detail);
				records(row).then(
					(list) => cell.replaceChildren(...plan(list)),
					(err) => cell.replaceChildren(el("p", null, "This browser cannot unpack the record (" + err + "). `atip audit why " + row.id + "` prints it.")));
			}
			if (detail) detail.hidden = !open;
		});
		return tr;
	}

	function more() {
		const part = document.createDocumentFragment();
		const end = Math.min(shown.length, rendered + CHUNK);
		for (; rendered < end; rendered++) part.append(rowOf(shown[rendered], rendered));
		$("list").tBodies[0].append(part);
		const left = shown.length - rendered;
		$("more").hidden = left === 0;
		$("more").textContent = "Show " + Math.min(CHUNK, left) + " more of " + left.toLocaleString("en");
	}

	// --- one record

	const quote = (argv) => (argv || []).map((w) => (/^[A-Za-z0-9_@%+=:,.\/-]+$/.test(w) ? w : "'" + String(w).replace(/'/g, "'\\''") + "'")).join(" ");

	function facts(pairs) {
		const dl = el("dl", { class: "facts" });
		for (const [k, v] of pairs) {
			if (v === undefined || v === null || v === "" || (Array.isArray(v) && v.length === 0)) continue;
			dl.append(el("dt", null, k), el("dd", null, v));
		}
		return dl;
	}

	const codes = (list) => (list || []).map((x) => el("div", null, el("code", null, x)));

	function plan(list) {
		const r = list[0];
		const d = r.decision || (list[1] || {}).decision || {};
		const box = (r.sandbox || {});
		const out = [el("h3", null, "Decision"), facts([
			["Command", el("code", null, quote(r.argv))],
			["Record", el("code", null, r.id)],
			["Directory", el("code", null, r.cwd || "")],
			["Decision", d.action],
			["Rules", codes(d.rules)],
			["Profile", d.profile],
			["Policies", codes((d.policy || []).map((p) => p.layer + " " + p.file + " " + String(p.sha256).slice(0, 12)))],
			["Error", r.error ? r.error.code + ": " + r.error.message : ""],
			["Approval", r.grant ? el("code", null, JSON.stringify(r.grant)) : ""],
			["Session", r.session],
			["Agent", r.agent],
			["Parent run", r.parent ? r.parent + (r.unverified ? " (unverified: the run inside said this)" : "") : ""],
			["Sandbox", box.tier ? box.tier + (box.net ? ", network " + box.net.mode : "") + (box.exec ? ", starts " + box.exec : "") : ""],
			["Gaps", codes((box.gaps || []).map((g) => g.guarantee + ": " + g.why))],
			["Hosts", codes(((r.network || {}).log || []).map((e) => e.decision + " " + e.host + ":" + e.port + (e.reason ? " (" + e.reason + ")" : "")))],
			["Refusals", codes((r.denials || []).map((x) => x.op + " " + (x.path || "") + (x.count > 1 ? " x " + x.count : "") + (x.rule ? " (" + x.rule + ")" : "")))],
			["Refused starts", codes(((r.starts || {}).refusals || []).map((s) => s.code + " " + quote(s.argv) + ": " + s.message))],
			["Deferred starts", (r.starts || {}).decided ? plural(r.starts.decided, "start was", "starts were") + " decided when it happened" : ""],
			["Redactions", codes(["stdout", "stderr"].flatMap((s) => (((r.filter || {})[s] || {}).redactions || []).map((x) => s + ": " + x.count + " x " + x.rule + (x.tag ? " " + x.tag : ""))))],
			["Protected names", codes((r.protected || {}).changed)],
			["Files changed", r.undo && r.undo.changed ? r.undo.changed.added + " added, " + r.undo.changed.changed + " changed, " + r.undo.changed.removed + " removed (checkpoint " + r.undo.checkpoint + ")" : ""],
			["Ended", r.exit === undefined ? "" : "exit " + r.exit + (r.child && r.child.signal ? " by " + r.child.signal : "") + (r.timing ? " after " + r.timing.run_ms + " ms" : "")],
		])];
		(d.steps || []).forEach((s, i) => {
			const effects = Object.entries(s.effects || {}).filter(([k, f]) => (k === "reversible" || k === "idempotent" ? f.value !== "yes" : f.value !== "no"));
			out.push(el("div", { class: "step" }, el("h3", null, "Step " + (i + 1) + " "), el("code", null, quote(s.argv)), facts([
				["Inside", codes(s.via)],
				["Decided", s.decided === "exec" ? "when it started" : ""],
				["Program", s.sha256 ? el("code", null, "sha256 " + s.sha256) : ""],
				["Effects", effects.map(([k, f]) => el("div", null, k + ": " + f.value + " (" + f.source + ")"))],
				["Resources", codes((s.resources || []).map((x) => x.access + " " + (x.abs || x.value) + (x.host ? " host " + x.host : "") + (x.class ? " (" + x.class + ")" : "")))],
				["Rules", codes(s.rules)],
				["Set aside", codes((s.lifted || []).map((l) => l.rule + " by " + l.by))],
			])));
		});
		out.push(el("details", null, el("summary", null, "The whole record"), ...list.map((one) => el("pre", { tabindex: "0" }, JSON.stringify(one, null, 2)))));
		return out;
	}

	// --- the chart

	const clock = (t) => new Date(t).toISOString().slice(0, 19).replace("T", " ");

	function chart() {
		const svg = $("chart");
		const times = shown.map((r) => r.ms0).filter(Number.isFinite);
		$("chart-section").hidden = times.length === 0;
		if (times.length === 0) return;
		let from = Infinity, to = -Infinity;
		for (const t of times) {
			if (t < from) from = t;
			if (t > to) to = t;
		}
		// A bar is at least a second, and a short time does not fill the whole width.
		from = Math.floor(from / 1000) * 1000;
		const width = Math.max(1000, Math.ceil((to - from + 1) / BINS / 1000) * 1000);
		const n = Math.max(MIN_BINS, Math.ceil((to - from + 1) / width));
		const bins = Array.from({ length: n }, () => Object.fromEntries(OUTCOMES.map((o) => [o, 0])));
		for (const r of shown) {
			if (Number.isFinite(r.ms0)) bins[Math.min(n - 1, Math.floor((r.ms0 - from) / width))][r.d]++;
		}
		const sum = (b) => OUTCOMES.reduce((s, o) => s + b[o], 0);
		const top = Math.max(...bins.map(sum));
		svg.setAttribute("viewBox", "0 0 " + n * 10 + " 100");
		svg.replaceChildren();
		const table = $("chart-table").tBodies[0];
		table.replaceChildren();
		bins.forEach((b, i) => {
			if (sum(b) === 0) return;
			let y = 100;
			const start = clock(from + i * width);
			for (const o of OUTCOMES) {
				if (b[o] === 0) continue;
				const h = (b[o] / top) * 98;
				y -= h;
				const bar = document.createElementNS("http://www.w3.org/2000/svg", "rect");
				for (const [k, v] of [["class", o], ["x", i * 10 + 1], ["y", y], ["width", 8], ["height", h]]) bar.setAttribute(k, v);
				const title = document.createElementNS("http://www.w3.org/2000/svg", "title");
				title.textContent = start + ": " + b[o] + " " + LABELS[o];
				bar.append(title);
				svg.append(bar);
			}
			table.append(el("tr", null, el("th", { scope: "row" }, start), OUTCOMES.map((o) => el("td", null, String(b[o])))));
		});
		const total = Object.fromEntries(OUTCOMES.map((o) => [o, bins.reduce((s, b) => s + b[o], 0)]));
		$("chart-text").textContent = OUTCOMES.filter((o) => total[o]).map((o) => total[o].toLocaleString("en") + " " + LABELS[o]).join(", ") + "; at most " + top.toLocaleString("en") + " in one bar.";
		$("chart-from").textContent = clock(from);
		$("chart-to").textContent = clock(from + n * width);
	}

	// --- start

	function options(select, values, label) {
		for (const v of values) select.append(el("option", { value: v }, label(v)));
	}

	options($("effect"), [...new Set(rows.flatMap((r) => (r.f || []).map((f) => f.replace("?", ""))))], (v) => v);
	const sessions = [...new Set(rows.map((r) => "s:" + (r.s || "")))];
	if (sessions.length <= 500) options($("session"), sessions, (v) => v.slice(2) || "(none)");
	else $("session").parentElement.hidden = true;
	$("filter").hidden = false;
	$("filter").addEventListener("submit", (e) => e.preventDefault());
	$("filter").addEventListener("change", apply);
	$("filter").addEventListener("reset", () => setTimeout(apply));
	let pause = 0;
	$("q").addEventListener("input", () => {
		clearTimeout(pause);
		pause = setTimeout(apply, 120);
	});
	$("more").addEventListener("click", () => {
		const first = rendered;
		more();
		$("list").tBodies[0].querySelectorAll("tr.row")[first].querySelector("button").focus();
	});
	// A link to #ID shows that record.
	function linked() {
		const id = decodeURIComponent(location.hash.slice(1));
		if (!id || !rows.some((r) => r.id === id)) return;
		$("filter").reset();
		// After the reset has been applied.
		setTimeout(() => {
			$("q").value = id;
			apply();
			const button = document.querySelector("#list button.command");
			if (button) button.click();
		});
	}
	window.addEventListener("hashchange", linked);
	apply();
	linked();
})();
