//! Migrations: the steps that create the tables of a store, and bring older ones up to date.
//!
//! It knows no dialect. A store's version is the number of steps that it has had, and is stored where every
//! earlier program reads it. Invariants: a released step is never changed; a change is a new step. A store of
//! a newer version is left alone. Of several servers that start at once, one applies the steps. The others
//! wait for it, or end with an error.

use super::{DirectoryError, Fault};
use crate::limits::{DATABASE_MIGRATION_TIME, MIGRATION_LOCK_WAIT_TIME};

/// A migration.
pub(super) struct Step {
    /// The additions, for the log.
    pub(super) name: &'static str,
    /// Its statements.
    pub(super) text: &'static str,
}

/// The version of a store, and whether servers may use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// The store's kind, such as PostgreSQL.
    pub store: &'static str,
    /// The steps that the store has had; 0 if it has no tables.
    pub version: i64,
    /// The steps that this program knows.
    pub known: i64,
    /// Why no server may use the directory; empty if servers may.
    pub closed: String,
}

impl Schema {
    /// Checks that a server of this program may use the directory.
    pub(super) fn check(&self) -> Result<(), DirectoryError> {
        self.check_version()?;
        if self.closed.is_empty() {
            return Ok(());
        }
        Err(self.refusal(&format!("the directory is closed to servers: {}", self.closed)))
    }

    /// Checks that the tables are those of this program.
    pub(super) fn check_version(&self) -> Result<(), DirectoryError> {
        let Schema { version, known, .. } = self;
        if self.is_newer() {
            return Err(self.refusal(&format!(
                "a newer plimsoll made the tables (version {version}, this one knows {known}): start that one"
            )));
        }
        if version < known {
            return Err(self.refusal(&format!(
                "the tables are gone, or older than they were (version {version}): start the server again"
            )));
        }
        Ok(())
    }

    fn is_newer(&self) -> bool {
        !(0..=self.known).contains(&self.version)
    }

    fn refusal(&self, why: &str) -> DirectoryError {
        DirectoryError::Unavailable(Fault::Schema, format!("{}: {why}", self.store))
    }
}

/// A connection to a store, as far as migrations use it. After an error, the caller drops the connection,
/// which releases the lock.
pub(super) trait Migrations {
    /// The store's kind, such as PostgreSQL.
    const STORE: &'static str;
    /// All steps, in order.
    const STEPS: &'static [Step];

    /// Returns the number of steps that the store has had.
    fn version(&mut self) -> Result<i64, DirectoryError>;

    /// Returns why no server may use the directory; empty if servers may. Called only if the tables are those
    /// of this program.
    fn closed(&mut self) -> Result<String, DirectoryError>;

    /// Takes the lock that serialises migrations. Returns false if another server still has it after
    /// [`MIGRATION_LOCK_WAIT_TIME`].
    fn try_lock(&mut self) -> Result<bool, DirectoryError>;

    /// Applies a step, and stores `number` as the version.
    fn apply(&mut self, number: i64, step: &Step) -> Result<(), DirectoryError>;

    /// Commits the steps, as far as that is not done, and releases the lock.
    fn unlock(&mut self) -> Result<(), DirectoryError>;
}

/// Returns the version of the store, and whether servers may use it.
pub(super) fn schema<M: Migrations>(store: &mut M) -> Result<Schema, DirectoryError> {
    let known = i64::try_from(M::STEPS.len()).unwrap_or(i64::MAX);
    let mut schema = Schema { store: M::STORE, version: store.version()?, known, closed: String::new() };
    if schema.version == known {
        schema.closed = store.closed()?;
    }
    Ok(schema)
}

/// Applies the missing steps, under the lock.
pub(super) fn bring_up_to_date<M: Migrations>(store: &mut M) -> Result<(), DirectoryError> {
    for _ in 0..DATABASE_MIGRATION_TIME.as_secs() / MIGRATION_LOCK_WAIT_TIME.as_secs() {
        let found = schema(store)?;
        if found.version == found.known || found.is_newer() {
            return found.check_version();
        }
        if store.try_lock()? {
            apply_missing(store)?;
            store.unlock()?;
            return schema(store)?.check_version();
        }
    }
    let store = M::STORE;
    let why = "another server upgrades the tables; start this one when that has ended";
    Err(DirectoryError::Unavailable(Fault::Schema, format!("{store}: {why}")))
}

fn apply_missing<M: Migrations>(store: &mut M) -> Result<(), DirectoryError> {
    // The previous owner of the lock may have applied some.
    let had = store.version()?;
    for (number, step) in (1..).zip(M::STEPS).filter(|(number, _)| *number > had) {
        store.apply(number, step)?;
        if had > 0 {
            tracing::info!(version = number, adds = step.name, "{} was upgraded", M::STORE);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store whose lock is free after so many attempts.
    struct Fake {
        version: i64,
        attempts_left: u32,
        applied: Vec<i64>,
    }

    impl Migrations for Fake {
        const STORE: &'static str = "Fake";
        const STEPS: &'static [Step] = &[Step { name: "a", text: "" }, Step { name: "b", text: "" }];

        fn version(&mut self) -> Result<i64, DirectoryError> {
            Ok(self.version)
        }

        fn closed(&mut self) -> Result<String, DirectoryError> {
            Ok(String::new())
        }

        fn try_lock(&mut self) -> Result<bool, DirectoryError> {
            self.attempts_left = self.attempts_left.saturating_sub(1);
            Ok(self.attempts_left == 0)
        }

        fn apply(&mut self, number: i64, _: &Step) -> Result<(), DirectoryError> {
            self.version = number;
            self.applied.push(number);
            Ok(())
        }

        fn unlock(&mut self) -> Result<(), DirectoryError> {
            Ok(())
        }
    }

    fn brought_from(version: i64, attempts_left: u32) -> (Result<(), DirectoryError>, Vec<i64>) {
        let mut store = Fake { version, attempts_left, applied: Vec::new() };
        let done = bring_up_to_date(&mut store);
        (done, store.applied)
    }

    #[test]
    fn the_missing_steps_are_applied_in_order_and_none_to_a_newer_store() {
        assert_eq!(brought_from(0, 1), (Ok(()), vec![1, 2]));
        assert_eq!(brought_from(1, 3), (Ok(()), vec![2]));
        assert_eq!(brought_from(2, 1), (Ok(()), vec![]));
        for newer in [3, 1000, -1] {
            let (refused, applied) = brought_from(newer, 1);
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains("Fake: a newer plimsoll made the tables"), "{refused}");
            assert!(refused.contains(&format!("version {newer},")) && applied.is_empty(), "{refused}");
        }
    }

    #[test]
    fn a_directory_that_is_closed_or_has_another_version_is_refused_with_a_reason() {
        let schema =
            |version, closed: &str| Schema { store: "Fake", version, known: 2, closed: closed.to_owned() };
        assert_eq!(schema(2, "").check(), Ok(()));
        assert_eq!(schema(2, "it was moved").check_version(), Ok(()));
        for (schema, why) in [
            (schema(2, "it was moved"), "closed to servers: it was moved"),
            (schema(1, ""), "older than they were (version 1)"),
            (schema(3, ""), "newer plimsoll"),
        ] {
            let refused = schema.check().unwrap_err().to_string();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
