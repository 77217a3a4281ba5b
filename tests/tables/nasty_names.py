"""Names of columns that some engine, format or our own code could take for something else."""

#: Names, each beside columns that it would match as a pattern, an expression or without regard to case.
NASTY = (
    # patterns and expressions of polars, DuckDB, Spark, pandas and SQL
    "^h$", "^.*$", "*", "h.*", "h.i", ".h", "`h`", "`", "h`", "COLUMNS(*)", "COLUMNS('.*')", "count(*)",
    "h + i", "h::int",
    "#1", "$1", "?", "@h", "h[0]", "h->i", "t.h", "t.*", "EXCLUDE", "select", "NULL", "true", "rowid",
    "filename", "h=i",
    # quotes, separators and escapes
    '"', '"h"', "'", "h'; DROP TABLE h; --", 'h"; --', "h,i", "h;i", "h\ti", "h\ni", "h\\", "\\h", "%s",
    "{h}", "{0}", "h|i",
    # white space, case, other scripts, length
    "", " ", " h", "h ", "H", "İ", "ß", "e\u0301", "🎈", "\ufeffh", "\u202eh", "h" * 3000, "0", "-1",
    "1.5", "nan", "None", "-",
    # names that the package itself gives to columns
    "c0", "c1", "C1", "g0", "b0", "label", "node", "rows", "weights", "squares", "bin", "start", "base",
    "slope", "key0", "row",
    "repaired_", "known", "state", "unknown", "n0", "u0", "n", "c0_missing", "sensitive_feature_0",
    "column_0", "index", "level_0",
    "__index_level_0__", "_index",
)  # fmt: skip

#: Columns beside, none of which is meant.
DECOYS = ("h", "i", "x", "c9", "g1", "score", "weight", "Label", "é")
