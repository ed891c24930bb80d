/** Failed logins and locks; the guess guard uses these tables, as on hosts. */
export const guessTables = `
  CREATE TABLE guess (
    key TEXT PRIMARY KEY,
    failures INTEGER NOT NULL,
    blocked_until INTEGER NOT NULL,
    forget_at INTEGER NOT NULL,
    times TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX guess_forget_at ON guess (forget_at);
  CREATE TABLE guess_time (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    at INTEGER NOT NULL
  ) STRICT;
  INSERT INTO guess_time VALUES (1, 0);
`
