package atip

import (
	"slices"
	"strings"
)

// sqlVerdict is what a text of SQL statements may do.
type sqlVerdict struct {
	mutates  bool // changes data or schema
	destroys bool // removes data or schema
	opaque   bool // runs code, or cannot be read with certainty
	calls    bool // calls a function that is not listed: a server's may do anything
}

func (v *sqlVerdict) join(o sqlVerdict) {
	v.mutates = v.mutates || o.mutates
	v.destroys = v.destroys || o.destroys
	v.opaque = v.opaque || o.opaque
	v.calls = v.calls || o.calls
}

// classifySQL reads statements as PostgreSQL, MySQL and SQLite do. Where they differ
// on where a literal or comment ends, the text is opaque: whatever hides a statement
// from one of them must not hide it from us.
func classifySQL(text string) sqlVerdict {
	var verdict sqlVerdict
	for {
		imports := importsFile(text)
		if !imports && !ShowsOnly(text) {
			break
		}
		verdict.mutates = verdict.mutates || imports
		// Such a command ends with its line.
		_, rest, more := strings.Cut(strings.TrimLeft(text, " \t\n"), "\n")
		if text = rest; !more {
			return verdict
		}
	}
	statements, ok := splitSQL(text)
	if !ok {
		verdict.opaque = true
	}
	for _, s := range statements {
		verdict.join(classifyStatement(s))
	}
	if verdict.destroys {
		verdict.mutates = true
	}
	return verdict
}

// SQLDestroys reports a text of SQL statements that removes data or schema.
func SQLDestroys(text string) bool { return classifySQL(text).destroys }

// ShowsOnly reports a text that begins with a command of the sqlite3 shell which prints something and takes
// neither a file nor a program. Other shells refuse it.
func ShowsOnly(text string) bool {
	name, rest, ok := dotCommand(text)
	if !ok || strings.Contains(rest, "/") {
		return false
	}
	switch name {
	case "schema", "tables", "indexes", "indices", "databases", "dbinfo", "fullschema", "header", "headers", "mode", "stats", "help", "version", "show", "dump", "sha3sum", "width", "timer", "nullvalue", "echo", "bail", "eqp", "lint":
		return true
	}
	return false
}

// importsFile reports a text that begins with an import into a table, from a file below the directory that is not
// hidden. The sandbox says whether it may be read.
func importsFile(text string) bool {
	name, rest, ok := dotCommand(text)
	return ok && name == "import" && !strings.Contains(" "+rest, " /") && !strings.Contains(" "+rest, " .") && !strings.Contains(rest, "/.")
}

// dotCommand cuts the first line of a text that is a command of the sqlite3 shell; ok says that it is written
// with names, numbers and paths alone.
func dotCommand(text string) (name, rest string, ok bool) {
	text, _, _ = strings.Cut(strings.TrimLeft(text, " \t\n"), "\n")
	text = strings.TrimRight(text, " \t")
	if len(text) < 2 || text[0] != '.' {
		return "", "", false
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '.' && c != '%' && c != '*' && c != '-' && c != ' ' && c != '/' {
			return "", "", false
		}
	}
	name, rest, _ = strings.Cut(text[1:], " ")
	return name, rest, true
}

func classifyStatement(s []sqlToken) sqlVerdict {
	for len(s) > 0 && s[0].text == "(" {
		s = s[1:]
	}
	if len(s) == 0 {
		return sqlVerdict{}
	}
	if s[0].kind != sqlWord {
		return sqlVerdict{opaque: true}
	}
	switch s[0].text {
	case "SELECT", "VALUES", "TABLE":
		v := functions(s)
		v.opaque = v.opaque || hasWord(s, "INTO")
		return v
	case "SHOW", "DESCRIBE", "DESC":
		return functions(s)
	case "USE":
		return sqlVerdict{}
	case "BEGIN", "START", "COMMIT", "ROLLBACK", "END", "SAVEPOINT", "RELEASE", "ABORT":
		// More words than these have would be the body of a procedure.
		return sqlVerdict{opaque: len(s) > 6}
	case "WITH":
		return classifyWith(s)
	case "EXPLAIN":
		return classifyExplain(s)
	case "PRAGMA":
		return sqlVerdict{opaque: !readingPragma(s)}
	}
	return classifyChange(s)
}

func classifyChange(s []sqlToken) sqlVerdict {
	v := functions(s)
	v.join(change(s))
	return v
}

func change(s []sqlToken) sqlVerdict {
	switch s[0].text {
	case "INSERT", "MERGE", "GRANT", "REVOKE", "COMMENT":
		return sqlVerdict{mutates: true, destroys: hasWord(s, "OVERWRITE") || hasWord(s, "DELETE")}
	case "REPLACE":
		return sqlVerdict{mutates: true, destroys: true}
	case "UPDATE":
		return sqlVerdict{mutates: true, destroys: !hasWord(s, "WHERE")}
	case "CREATE":
		v := sqlVerdict{mutates: true}
		for _, w := range [...]string{"FUNCTION", "PROCEDURE", "TRIGGER", "EXTENSION", "EVENT", "SERVER", "LANGUAGE", "RULE", "AGGREGATE", "OPERATOR", "SUBSCRIPTION", "VIRTUAL"} {
			v.opaque = v.opaque || hasWord(s, w)
		}
		return v
	case "DELETE", "TRUNCATE", "DROP":
		return sqlVerdict{mutates: true, destroys: true}
	case "ALTER":
		return sqlVerdict{mutates: true, destroys: hasWord(s, "DROP") || hasWord(s, "TRUNCATE"), opaque: hasWord(s, "SYSTEM")}
	case "VACUUM", "ANALYZE", "REINDEX":
		return sqlVerdict{mutates: true, opaque: hasWord(s, "INTO")}
	case "COPY":
		return classifyCopy(s)
	}
	return sqlVerdict{opaque: true}
}

// classifyCopy: only the client's own standard streams are plain; a file is read or
// written, and a program run, by the server.
func classifyCopy(s []sqlToken) sqlVerdict {
	v := functions(s)
	v.opaque = v.opaque || hasWord(s, "PROGRAM")
	switch {
	case hasWord(s, "STDOUT") && !hasWord(s, "FROM"), hasWord(s, "STDOUT") && hasWord(s, "SELECT"):
	case hasWord(s, "STDIN"):
		v.mutates = true
	default:
		v.opaque = true
	}
	return v
}

// classifyWith joins the statement after the common table expressions with those
// inside them: PostgreSQL allows DELETE there.
func classifyWith(s []sqlToken) sqlVerdict {
	var v sqlVerdict
	depth, main := 0, -1
	for i := 1; i < len(s); i++ {
		switch s[i].text {
		case "(":
			depth++
			if i+1 < len(s) && isVerb(s[i+1]) {
				v.join(classifyStatement(s[i+1 : closing(s, i)]))
			}
		case ")":
			depth--
		default:
			if depth == 0 && main < 0 && isVerb(s[i]) {
				main = i
			}
		}
	}
	if main < 0 {
		v.opaque = true
		return v
	}
	v.join(classifyStatement(s[main:]))
	return v
}

// closing is the index of the parenthesis that closes the one at i.
func closing(s []sqlToken, i int) int {
	depth := 0
	for j := i; j < len(s); j++ {
		switch s[j].text {
		case "(":
			depth++
		case ")":
			if depth--; depth == 0 {
				return j
			}
		}
	}
	return len(s)
}

func isVerb(t sqlToken) bool {
	if t.kind != sqlWord {
		return false
	}
	switch t.text {
	case "SELECT", "VALUES", "TABLE", "INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE", "TRUNCATE", "DROP", "ALTER", "CREATE", "WITH":
		return true
	}
	return false
}

// classifyExplain: a plan is only shown, unless ANALYZE runs the statement.
func classifyExplain(s []sqlToken) sqlVerdict {
	for i := 1; i < len(s); i++ {
		if isVerb(s[i]) {
			if hasWord(s[:i], "ANALYZE") || hasWord(s[:i], "ANALYSE") {
				return classifyStatement(s[i:])
			}
			return sqlVerdict{}
		}
	}
	return sqlVerdict{opaque: hasWord(s, "ANALYZE") || hasWord(s, "ANALYSE")}
}

func readingPragma(s []sqlToken) bool {
	if len(s) < 2 || slices.ContainsFunc(s, func(t sqlToken) bool { return t.text == "=" }) {
		return false
	}
	switch s[1].text {
	case "TABLE_INFO", "TABLE_XINFO", "TABLE_LIST", "INDEX_LIST", "INDEX_INFO", "FOREIGN_KEY_LIST", "DATABASE_LIST":
		return true
	case "INTEGRITY_CHECK", "QUICK_CHECK", "USER_VERSION", "SCHEMA_VERSION", "JOURNAL_MODE", "COMPILE_OPTIONS", "PAGE_COUNT", "PAGE_SIZE":
		return len(s) == 2
	}
	return false
}

func hasWord(s []sqlToken, word string) bool {
	return slices.ContainsFunc(s, func(t sqlToken) bool { return t.kind == sqlWord && t.text == word })
}

// functions says what the functions do that are not known to be harmless: pg_read_file, lo_import,
// load_extension and setval all stand in a SELECT. Names before the first clause are tables, columns
// and types.
func functions(s []sqlToken) sqlVerdict {
	var v sqlVerdict
	inside := false
	for i, t := range s {
		if t.kind == sqlWord {
			switch t.text {
			case "SELECT", "VALUES", "SET", "WHERE", "USING", "RETURNING", "SHOW", "TABLE":
				inside = inside || t.text != "TABLE" || i == 0
			}
		}
		if !inside || i+1 >= len(s) || s[i+1].text != "(" {
			continue
		}
		switch {
		case t.kind == sqlQuoted, t.kind == sqlWord && i > 0 && s[i-1].text == ".":
			v.opaque = true
		case t.kind == sqlWord && !harmlessBeforeParenthesis(t.text):
			v.calls = true
			v.opaque = v.opaque || reaches(t.text)
		}
	}
	return v
}

// reaches reports a function of an embedded database that may do more than calculate, by its name:
// load_extension, writefile, edit, read_blob, sqlite_scan.
func reaches(function string) bool {
	for _, part := range [...]string{"FILE", "LOAD", "EXT", "EXEC", "SYSTEM", "SHELL", "EDIT", "BLOB", "HTTP", "GLOB", "SCAN", "QUERY", "ATTACH", "TOKENIZER", "READ_TEXT", "ENV", "SECRET"} {
		if strings.Contains(function, part) {
			return true
		}
	}
	return false
}

func harmlessBeforeParenthesis(word string) bool {
	switch word {
	case "SELECT", "FROM", "WHERE", "IN", "AND", "OR", "NOT", "ON", "AS", "VALUES", "EXISTS", "OVER", "UNION", "ALL",
		"EXCEPT", "INTERSECT", "JOIN", "LATERAL", "CASE", "WHEN", "THEN", "ELSE", "BY", "HAVING", "USING", "DISTINCT",
		"LIMIT", "OFFSET", "FILTER", "GROUP", "ANY", "SOME", "BETWEEN", "LIKE", "ILIKE", "RETURNING", "SET", "IS",
		"COUNT", "SUM", "AVG", "MIN", "MAX", "TOTAL", "COALESCE", "NULLIF", "IFNULL", "LOWER", "UPPER", "LENGTH",
		"CHAR_LENGTH", "SUBSTR", "SUBSTRING", "TRIM", "LTRIM", "RTRIM", "LEFT", "RIGHT", "REPLACE", "INSTR", "POSITION",
		"CONCAT", "CONCAT_WS", "ROUND", "FLOOR", "CEIL", "CEILING", "ABS", "MOD", "POWER", "SQRT", "SIGN", "GREATEST",
		"LEAST", "NOW", "CURRENT_TIMESTAMP", "DATE", "TIME", "DATETIME", "STRFTIME", "JULIANDAY", "UNIXEPOCH",
		"DATE_TRUNC", "DATE_PART", "DATE_FORMAT", "DATE_ADD", "DATE_SUB", "DATEDIFF", "EXTRACT", "AGE", "TO_CHAR",
		"TO_DATE", "TO_TIMESTAMP", "TO_NUMBER", "CAST", "TYPEOF", "PG_TYPEOF", "ROW_NUMBER", "RANK", "DENSE_RANK",
		"NTILE", "LAG", "LEAD", "FIRST_VALUE", "LAST_VALUE", "ARRAY_AGG", "STRING_AGG", "GROUP_CONCAT", "JSON_AGG",
		"JSONB_AGG", "JSON_EXTRACT", "JSON_OBJECT", "JSON_ARRAY", "JSON_BUILD_OBJECT", "JSONB_BUILD_OBJECT", "ROW",
		"ARRAY", "UNNEST", "GENERATE_SERIES", "HEX", "MD5", "RANDOM", "VERSION", "DATABASE", "CURRENT_DATABASE",
		"CURRENT_SCHEMA", "CURRENT_USER", "PG_SIZE_PRETTY", "PG_TOTAL_RELATION_SIZE", "PG_RELATION_SIZE",
		"PG_DATABASE_SIZE", "VARCHAR", "CHAR", "NUMERIC", "DECIMAL", "INTERVAL", "MATERIALIZED", "CONFLICT":
		return true
	}
	return false
}
