//! Variations of an experiment from the command line: fewer contenders and points, other values.
//!
//! It runs nothing. Invariant: a variation is an experiment file of its own, which the results contain, so
//! that its results cannot be taken for those of the original.

use anyhow::{Context as _, Result, bail, ensure};
use plimsoll_wire::nearest::suggestion;
use toml::{Table, Value};

use super::tables;
use crate::experiment::{Experiment, FileMistake, conditions, copy_from_earlier, load, name_of, order};

/// The tables of an experiment file in which a key can have another value.
const TABLES: [&str; 5] = ["load", "order", "conditions", "sweep", "open_loop"];

/// A variation of an experiment.
#[derive(Clone, Debug, Default)]
pub struct Variation {
    /// The names of the contenders that take part, also several separated by commas; empty for all.
    pub only: Vec<String>,
    /// Points that are left: keys with the values that remain, separated by commas.
    pub at: Vec<(String, String)>,
    /// Keys with other values.
    pub set: Vec<(String, String)>,
}

impl Variation {
    /// Returns the varied text of an experiment.
    ///
    /// # Errors
    /// The text is no TOML, or it has no such contender, key or value.
    pub fn of(&self, text: &str) -> Result<String> {
        if self.only.is_empty() && self.at.is_empty() && self.set.is_empty() {
            return Ok(text.to_owned());
        }
        let mut file: Table = text.parse().map_err(|error| FileMistake::of_syntax(text, &error))?;
        self.select_contenders(&mut file)?;
        self.at.iter().try_for_each(|(key, values)| select_points(&mut file, key, values))?;
        for (key, value) in &self.set {
            let before = file.clone();
            set(&mut file, key, value)?;
            check_type(&before, &file).with_context(|| format!("`--set {key}={value}`"))?;
        }
        tables::shorten(&mut file);
        Ok(toml::to_string(&file)?)
    }

    fn select_contenders(&self, file: &mut Table) -> Result<()> {
        let Some(Value::Array(contenders)) = file.get_mut("contenders") else { return Ok(()) };
        if self.only.is_empty() {
            return Ok(());
        }
        let tables = contenders.iter().map(|one| one.as_table().cloned()).collect::<Option<Vec<Table>>>();
        let mut tables = tables.context("`contenders` is no list of tables")?;
        let names: Vec<&str> = tables.iter().filter_map(name_of).collect();
        // A name may have a comma.
        let wanted = self.only.iter().flat_map(|only| match names.contains(&only.as_str()) {
            true => vec![only.as_str()],
            false => only.split(',').collect(),
        });
        let wanted: Vec<String> = wanted.map(str::to_owned).collect();
        if let Some(unknown) = wanted.iter().find(|only| !names.contains(&only.as_str())) {
            bail!("`--only`: no contender is called {unknown:?}; there are {}", names.join(", "));
        }
        // A contender may have the values of one that is left out.
        copy_from_earlier(&mut tables);
        tables.retain(|one| name_of(one).is_some_and(|name| wanted.iter().any(|only| only == name)));
        *contenders = tables.into_iter().map(Value::Table).collect();
        Ok(())
    }
}

/// Keeps the points at which `key` has one of `values`.
fn select_points(file: &mut Table, key: &str, values: &str) -> Result<()> {
    let wanted: Vec<&str> = values.split(',').collect();
    let swept = file.get_mut("sweep").and_then(|sweep| sweep.get_mut(key)).and_then(Value::as_array_mut);
    let mut there: Vec<String> = Vec::new();
    if let Some(swept) = swept {
        there.extend(swept.iter().map(plain));
        swept.retain(|value| wanted.contains(&plain(value).as_str()));
    }
    if let Some(points) = file.get_mut("points").and_then(Value::as_array_mut) {
        there.extend(points.iter().filter_map(|point| point.get(key)).map(plain));
        points.retain(|point| point.get(key).is_none_or(|value| wanted.contains(&plain(value).as_str())));
    }
    ensure!(!there.is_empty(), "`--at {key}`: neither `sweep` nor `points` has {key:?}");
    let missing = wanted.iter().find(|wanted| !there.iter().any(|value| value == *wanted));
    there.dedup();
    ensure!(missing.is_none(), "`--at {key}`: {key:?} has the values {}", there.join(", "));
    Ok(())
}

/// Replaces the value of `key` wherever it has one: in a table, in points, in contenders. Without one, it
/// belongs to the order, to the conditions or to the load, by its name.
fn set(file: &mut Table, key: &str, value: &str) -> Result<()> {
    let scalar = value.parse().map_or_else(|_| Value::String(value.to_owned()), Value::Integer);
    let mut is_set = false;
    for name in TABLES {
        let Some(held) = file.get_mut(name).and_then(|table| table.get_mut(key)) else { continue };
        *held = if held.is_array() { Value::Array(vec![scalar.clone()]) } else { scalar.clone() };
        is_set = true;
    }
    for name in ["points", "contenders"] {
        for table in file.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(held) = table.get_mut(key) {
                *held = scalar.clone();
                is_set = true;
            }
        }
    }
    if !is_set {
        let name = match () {
            () if order::is_key(key) => "order",
            () if conditions::is_condition(key) => "conditions",
            () if load::is_setting(key) => "load",
            () => bail!("`--set {key}`: there is no such key; {}", suggestion(key, known_keys(file))),
        };
        let table = file.entry(name).or_insert_with(|| Value::Table(Table::new()));
        let table = table.as_table_mut().with_context(|| format!("`{name}` is no table"))?;
        table.insert(key.to_owned(), scalar);
    }
    Ok(())
}

/// Refuses a value of another type. The error has no line, because the value is in no file.
fn check_type(before: &Table, after: &Table) -> Result<()> {
    let mistake = |file: &Table| -> Result<Option<FileMistake>> {
        Ok(Experiment::parse(&toml::to_string(file)?).err().and_then(|error| error.downcast().ok()))
    };
    match (mistake(before)?, mistake(after)?) {
        (None, Some(mistake)) => bail!(mistake.what),
        _ => Ok(()),
    }
}

/// Returns the keys that `--set` takes: those of the load, the order and the conditions, and those that the
/// file has in its sweep, points and contenders.
fn known_keys(file: &Table) -> Vec<&str> {
    let mut known: Vec<&str> = load::setting_names().chain(order::KEYS).collect();
    known.extend(conditions::condition_names());
    let tables = TABLES.into_iter().filter_map(|name| file.get(name)?.as_table());
    let lists = ["points", "contenders"].into_iter().filter_map(|name| file.get(name)?.as_array());
    for key in tables.chain(lists.flatten().filter_map(Value::as_table)).flat_map(Table::keys) {
        if !known.contains(&key.as_str()) {
            known.push(key);
        }
    }
    known
}

/// Returns a value as the command line has it.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        name = "whole"
        [[files]]
        name = "1K"
        size = "1kB"
        count = 10
        [[files]]
        name = "1M"
        size = "1MB"
        count = 10
        [[contenders]]
        like = "nginx-tuned"
        logs = "off"
        [[contenders]]
        name = "other"
        logs = "off"
        url = "http://127.0.0.1:1/{file}"
        [load]
        users = 64
        [sweep]
        connections = ["kept", "new"]
        [[points]]
        files = "1K"
        time = "1s"
        [[points]]
        files = "1M"
        time = "4s"
    "#;

    fn varied(only: &[&str], at: &[(&str, &str)], set: &[(&str, &str)]) -> Result<Experiment> {
        let pairs = |list: &[(&str, &str)]| {
            list.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let only = only.iter().map(|name| (*name).to_owned()).collect();
        Experiment::parse(&Variation { only, at: pairs(at), set: pairs(set) }.of(TEXT)?)
    }

    #[test]
    fn contenders_and_points_are_selected_and_values_replaced() {
        assert_eq!(varied(&[], &[], &[]).unwrap().trials().len(), 2 * 2 * 2 * 3);
        let less = varied(
            &["other"],
            &[("files", "1M"), ("connections", "new")],
            &[
                ("repetitions", "5"),
                ("users", "8"),
                ("time", "2s"),
                ("think", "1s"),
                ("logs", "on"),
                ("link", "none"),
            ],
        )
        .unwrap();
        let trials = less.trials();
        assert_eq!((trials.len(), less.contenders.len()), (5, 1));
        let load = less.settings(&trials[0]).unwrap().load;
        let expected =
            [("connections", "new"), ("files", "1M"), ("think", "1s"), ("time", "2s"), ("users", "8")];
        assert_eq!(load.0.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_tables_of_a_document_keep_the_contenders_and_points_that_are_left() {
        let text = TEXT.replace("\"other\"", "\"other, too\"")
            + "[[document]]\nsource = \"a\"\ntitle = \"a\"\nrow = \"files\"\nrows = [\"1K\", \"1M\"]\n\
               [[document.columns]]\ntitle = \"X\"\nfigure = \"throughput\"\nat = { connections = \"new\" }\n\
               contenders = [\"nginx-tuned\", \"other, too\"]\npublished = [1, 2]\n\
               [[document.columns]]\ntitle = \"R\"\nfigure = \"response\"\nat = { connections = \"new\" }\n\
               contenders = [\"nginx-tuned\"]\n\
               [[document]]\nsource = \"b\"\ntitle = \"b\"\nrow = \"contender\"\nrows = [\"nginx-tuned\"]\n\
               [[document.columns]]\ntitle = \"X\"\nfigure = \"throughput\"\n\
               at = { files = \"1M\", connections = \"new\" }\n";
        Experiment::parse(&text).unwrap();
        let (only, at) = (vec!["other, too".to_owned()], vec![("files".to_owned(), "1M".to_owned())]);
        let less = Experiment::parse(&Variation { only, at, set: Vec::new() }.of(&text).unwrap()).unwrap();
        let [table] = less.documents.as_slice() else { panic!("one table") };
        assert_eq!((table.rows.len(), table.columns.len()), (1, 1));
        let column = &table.columns[0];
        assert_eq!((column.contenders[0].as_str(), column.published[0].0.as_str()), ("other, too", "2"));
        let both = Variation { only: vec!["nginx-tuned,ot".to_owned()], ..Variation::default() };
        assert!(both.of(&text).unwrap_err().to_string().contains("\"ot\""));
    }

    #[test]
    fn a_contender_keeps_the_values_of_an_earlier_one_that_is_left_out() {
        let more = "[[contenders]]\nname = \"third\"\nlike = \"other\"\nabout = \"as the other\"\n[load]";
        let only = vec!["third".to_owned()];
        let variation = Variation { only, ..Variation::default() };
        let text = variation.of(&TEXT.replace("[load]", more)).unwrap();
        let experiment = Experiment::parse(&text).unwrap();
        let [third] = experiment.contenders.as_slice() else { panic!("one contender") };
        assert_eq!((third.name.as_str(), third.url.as_str()), ("third", "http://127.0.0.1:1/{file}"));
    }

    #[test]
    fn a_name_unknown_to_an_experiment_is_refused_with_the_known_ones() {
        for (refused, why) in [
            (varied(&["apache"], &[], &[]), "nginx-tuned, other"),
            (varied(&[], &[("files", "1K,1G")], &[]), "1K, 1M"),
            (varied(&[], &[("size", "1")], &[]), "neither `sweep` nor `points`"),
            (
                varied(&[], &[], &[("usres", "1")]),
                "`--set usres`: there is no such key; did you mean \"users\"?",
            ),
            (varied(&[], &[], &[("repetitons", "3")]), "did you mean \"repetitions\"?"),
            (varied(&[], &[], &[("colour", "3")]), "settle, cache"),
            (
                varied(&[], &[], &[("repetitions", "x")]),
                "`--set repetitions=x`: `repetitions` is \"x\": write a whole number",
            ),
        ] {
            let refused = format!("{:#}", refused.unwrap_err());
            assert!(refused.contains(why), "{refused}");
        }
    }
}
