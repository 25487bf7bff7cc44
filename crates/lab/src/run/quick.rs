//! The quick form of an experiment: every contender and kind of trial once, for a fraction of a second.
//!
//! It shows that an experiment works; its figures answer nothing. Invariant: the quick form is an
//! experiment file of its own, so that its results cannot be taken for those of the whole one.

mod documents;

use anyhow::Result;
use toml::{Table, Value};

use super::tables;

/// The time of a trial, and of its warm-up.
const TIME: &str = "300ms";
const WARM_UP: &str = "100ms";
/// The requests of a trial that ends by their number.
const REQUESTS: i64 = 20;
/// The most files of a set, and the most bytes.
const FILES: i64 = 20;
const BUDGET: &str = "20MB";

/// Returns the quick form of an experiment's text.
///
/// # Errors
/// The text is no TOML.
pub fn quick(text: &str) -> Result<String> {
    let mut file: Table = text.parse()?;
    if let Some(Value::String(name)) = file.get_mut("name") {
        name.push_str("-quick");
    }
    documents::shorten(&mut file);
    let order = file.entry("order").or_insert_with(|| Value::Table(Table::new()));
    if let Some(order) = order.as_table_mut() {
        for (name, number) in [("repetitions", 1), ("discarded", 0)] {
            order.insert(name.to_owned(), Value::Integer(number));
        }
        for name in ["gap", "settle"] {
            order.insert(name.to_owned(), Value::String("0s".to_owned()));
        }
    }
    if let Some(Value::Table(load)) = file.get_mut("load") {
        shorten(load);
    }
    if let Some(Value::Table(sweep)) = file.get_mut("sweep") {
        for (name, values) in sweep.iter_mut() {
            match (name.as_str(), values) {
                ("time", values) => *values = Value::Array(vec![Value::String(TIME.to_owned())]),
                (_, Value::Array(values)) if values.len() > 2 => {
                    let last = values.pop();
                    values.truncate(1);
                    values.extend(last);
                }
                _ => {}
            }
        }
    }
    for point in file.get_mut("points").and_then(Value::as_array_mut).into_iter().flatten() {
        point.as_table_mut().into_iter().for_each(shorten);
    }
    if let Some(Value::Array(percent)) = file.get_mut("open_loop").and_then(|table| table.get_mut("percent"))
    {
        percent.truncate(1);
    }
    if let Some(Value::Array(sets)) = file.get_mut("files") {
        sets.iter_mut().filter_map(Value::as_table_mut).for_each(shrink);
    }
    tables::shorten(&mut file);
    Ok(toml::to_string(&file)?)
}

fn shorten(load: &mut Table) {
    for (name, value) in
        [("time", Value::String(TIME.to_owned())), ("warm_up", Value::String(WARM_UP.to_owned()))]
    {
        if load.contains_key(name) {
            load.insert(name.to_owned(), value);
        }
    }
    for name in ["requests", "requests_each"] {
        if let Some(requests) = load.get_mut(name).filter(|value| value.is_integer()) {
            *requests = Value::Integer(requests.as_integer().unwrap_or_default().min(REQUESTS));
        }
    }
}

fn shrink(set: &mut Table) {
    for name in ["count", "per_user"] {
        if let Some(number) = set.get_mut(name).filter(|value| value.is_integer()) {
            *number = Value::Integer(number.as_integer().unwrap_or_default().min(FILES));
        }
    }
    if set.get("budget").is_none_or(Value::is_str) {
        set.insert("budget".to_owned(), Value::String(BUDGET.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;

    #[test]
    fn the_quick_form_has_the_ends_of_each_sweep_once() {
        let text = r#"
            name = "whole"
            [[files]]
            name = "1K"
            size = "1KiB"
            count = 1000
            [load]
            warm_up = "2s"
            [sweep]
            users = [1, 2, 4, 8]
            [[points]]
            connections = "new"
            time = "20s"
            [order]
            repetitions = 15
            discarded = 5
            gap = "60s"
            [open_loop]
            percent = [50, 70, 90]
            [[contenders]]
            like = "nginx-tuned"
        "#;
        let quick = Experiment::parse(&quick(text).unwrap()).unwrap();
        assert_eq!(quick.name, "whole-quick");
        let trials = quick.trials();
        let users: Vec<&str> = trials.iter().map(|trial| trial.point["users"].as_str()).collect();
        let percent: Vec<Option<u32>> =
            trials.iter().map(|trial| trial.open_loop.map(|one| one.percent)).collect();
        assert_eq!((users, percent), (vec!["1", "8", "8"], vec![None, None, Some(50)]));
        let settings = quick.settings(&trials[0]).unwrap();
        assert_eq!(settings.files.unwrap().count, 20);
        assert_eq!(settings.load.0["time"], TIME);
    }
}
