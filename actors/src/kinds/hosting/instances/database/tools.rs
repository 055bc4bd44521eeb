//! The programs that dump and restore a database, and the check that a dump is complete. Pure.
//!
//! The check looks at the end of the dump besides the exit code: a tool that was killed, and a tool
//! whose output was cut off, can both look like a success from outside.

use container_engine::Exec;
use contract::templates::{Database, DatabaseEngine};
use std::time::Duration;

/// Bytes of the end of a dump that are checked.
pub const TAIL: usize = 4096;
/// The first bytes of an archive of `mongodump` (`archive/archive.go` of mongo-tools).
const ARCHIVE: [u8; 4] = 0x8199_e26d_u32.to_le_bytes();
/// The last bytes of each part of an archive, and so of the archive.
const PART_END: [u8; 4] = [0xff; 4];
/// The last line of `pg_dump`, except for a line that ends its restricted mode.
const COMPLETE: &[u8] = b"PostgreSQL database dump complete";

/// Passes the password to a MongoDB tool as `/dev/fd/3`. The tools read a password only from a file
/// or from their arguments, which every user of the machine can see.
const WITH_PASSWORD: &str =
    "exec 3<<END\npassword: \"$SVC_PASSWORD\"\nEND\nexec \"$0\" --config=/dev/fd/3 \"$@\"";

/// The program that writes a dump of the database to its standard output.
pub fn dump(database: &Database, password: Option<&str>, within: Duration) -> Exec {
    match database.engine {
        DatabaseEngine::Postgresql => {
            let options = ["--format=plain", "--clean", "--if-exists", "--no-owner", "--no-acl"];
            postgresql("pg_dump", &options, database, password, within)
        }
        DatabaseEngine::Mongodb => {
            let name = format!("--db={}", database.name);
            mongodb("mongodump", &["--archive", "--quiet", &name], database, password, within)
        }
    }
}

/// The program that reads what [`dump`] wrote from its standard input.
pub fn restore(database: &Database, password: Option<&str>, within: Duration) -> Exec {
    match database.engine {
        DatabaseEngine::Postgresql => {
            let options = ["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--output=/dev/null"];
            postgresql("psql", &options, database, password, within)
        }
        DatabaseEngine::Mongodb => {
            let name = format!("--nsInclude={}.*", database.name);
            let options = ["--archive", "--drop", "--quiet", &name];
            mongodb("mongorestore", &options, database, password, within)
        }
    }
}

fn words(program: &str, options: &[&str]) -> Vec<String> {
    std::iter::once(program).chain(options.iter().copied()).map(str::to_owned).collect()
}

fn postgresql(
    program: &str,
    options: &[&str],
    database: &Database,
    password: Option<&str>,
    within: Duration,
) -> Exec {
    let mut command = words(program, options);
    command.extend(["--host=127.0.0.1".to_owned(), format!("--username={}", database.user)]);
    command.push(format!("--dbname={}", database.name));
    let env = password.map(|password| ("PGPASSWORD".to_owned(), password.to_owned()));
    Exec { command, env: env.into_iter().collect(), user: None, within }
}

fn mongodb(
    program: &str,
    options: &[&str],
    database: &Database,
    password: Option<&str>,
    within: Duration,
) -> Exec {
    let mut command = words(program, options);
    if password.is_some() {
        let login =
            [format!("--username={}", database.user), "--authenticationDatabase=admin".into()];
        command.extend(login);
        command.splice(0..0, ["sh", "-c", WITH_PASSWORD].map(str::to_owned));
    }
    let env = password.map(|password| ("SVC_PASSWORD".to_owned(), password.to_owned()));
    Exec { command, env: env.into_iter().collect(), user: None, within }
}

/// Precedes an SQL dump. The restore is one transaction, which [`SQL_AFTER`] commits: a dump that
/// is cut off changes nothing. All relations are dropped first, also those that the dump does not
/// contain.
pub const SQL_BEFORE: &str = r"BEGIN;
DO $svc$ DECLARE r record; BEGIN
FOR r IN SELECT n.nspname, c.relname, c.relkind FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\_%'
    AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
    AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')
LOOP EXECUTE format('DROP %s IF EXISTS %I.%I CASCADE', CASE r.relkind
  WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW' WHEN 'S' THEN 'SEQUENCE'
  WHEN 'f' THEN 'FOREIGN TABLE' ELSE 'TABLE' END, r.nspname, r.relname);
END LOOP; END $svc$;
";
/// See [`SQL_BEFORE`].
pub const SQL_AFTER: &str = "\nCOMMIT;\n";

/// Checks the first and the last bytes of a dump.
pub fn is_whole(engine: DatabaseEngine, head: &[u8], tail: &[u8]) -> Result<(), String> {
    let whole = match engine {
        DatabaseEngine::Postgresql => {
            tail.windows(COMPLETE.len()).any(|window| window == COMPLETE) && tail.ends_with(b"\n")
        }
        DatabaseEngine::Mongodb => head.starts_with(&ARCHIVE) && tail.ends_with(&PART_END),
    };
    if whole { Ok(()) } else { Err("the dump has no end: it was cut off".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_that_was_cut_is_known_by_its_end() {
        let sql = b"CREATE TABLE a ();\n--\n-- PostgreSQL database dump complete\n--\n\n\\unrestrict x\n\n";
        let whole = |dump: &[u8]| is_whole(DatabaseEngine::Postgresql, &[], dump).is_ok();
        assert!(whole(sql));
        for cut in [0, 1, 20, 56] {
            assert!(!whole(sql.get(..cut).unwrap_or_default()), "{cut}");
        }
        let archive = [&ARCHIVE[..], b"documents", &PART_END].concat();
        let whole = |dump: &[u8]| is_whole(DatabaseEngine::Mongodb, dump, dump).is_ok();
        assert!(whole(&archive) && !whole(&PART_END) && !whole(&ARCHIVE));
        for cut in 0..archive.len() {
            assert!(!whole(archive.get(..cut).unwrap_or_default()), "{cut}");
        }
    }
}
