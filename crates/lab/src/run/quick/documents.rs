//! The quick form of an experiment that repeats a document: its trials end by their number of requests, so
//! that each has some, however slow the machine is; their bytes are verified.
//!
//! It changes no experiment without a document's table. Invariant: tables keep the rows and columns that have
//! trials.

use plimsoll_wire::units::Size;
use toml::{Table, Value};

/// The requests of each user.
const REQUESTS_EACH: i64 = 2;
/// The most users.
const USERS: i64 = 20;
/// The most points that all stay.
const POINTS: usize = 8;
/// The most bytes of a file, and of one that is sent over a slow link.
const SIZE: &str = "1MB";
const LINK_SIZE: &str = "64KiB";
/// The element of a test file with the number of requests of a thread, which may be a variable.
const ITERATIONS: [&str; 2] = ["<iterations>", "</iterations>"];

/// Shortens an experiment that repeats a document, before the rest of it is shortened.
pub(super) fn shorten(file: &mut Table) {
    if !file.contains_key("document") {
        return;
    }
    let text = |name: &str| file.get("conditions").and_then(|conditions| conditions.get(name)?.as_str());
    let is_cold = text("cache").is_some_and(|cache| cache != "warm" && cache != "prefetched");
    let size_max = if text("link").is_some() { LINK_SIZE } else { SIZE };
    for set in tables_of(file, "files") {
        shrink(set, size_max);
    }
    if let Some(Value::Table(load)) = file.get_mut("load") {
        count_requests(load);
        // The points may have the time.
        load.remove("warm_up");
        if !is_cold && !load.contains_key("verify") {
            load.insert("verify".to_owned(), Value::String("all".to_owned()));
        }
        if let Some(Value::String(xml)) = load.get_mut("xml") {
            *xml = with_few_iterations(xml);
            let named: Vec<String> = iterations(xml).filter_map(variable).map(str::to_owned).collect();
            for name in named {
                set_variable(file, &name);
            }
        }
    }
    if let Some(Value::Array(users)) = file.get_mut("sweep").and_then(|sweep| sweep.get_mut("users")) {
        let first = users.first().cloned();
        users.retain(|users| users.as_integer().is_none_or(|users| users <= USERS));
        if users.is_empty() {
            users.extend(first);
        }
    }
    if let Some(Value::Array(points)) = file.get_mut("points")
        && points.len() > POINTS
    {
        points.drain(1..points.len() - 1);
    }
    for point in tables_of(file, "points") {
        count_requests(point);
    }
    if let Some(Value::Table(order)) = file.get_mut("order") {
        order.remove("restart");
    }
}

fn tables_of<'a>(file: &'a mut Table, name: &str) -> impl Iterator<Item = &'a mut Table> {
    let tables = file.get_mut(name).and_then(Value::as_array_mut);
    tables.into_iter().flatten().filter_map(Value::as_table_mut)
}

fn shrink(set: &mut Table, size_max: &str) {
    let bytes = |text: &str| text.parse::<Size>().map_or(0, |size| size.0);
    if let Some(Value::String(size)) = set.get_mut("size")
        && bytes(size) > bytes(size_max)
    {
        size_max.clone_into(size);
    }
}

/// Ends trials by a number of requests instead of a time.
fn count_requests(load: &mut Table) {
    if load.remove("time").is_some() {
        load.insert("requests_each".to_owned(), Value::Integer(REQUESTS_EACH));
    }
}

/// Returns a test file whose tests have few iterations. A variable stays.
fn with_few_iterations(xml: &str) -> String {
    let mut parts = xml.split(ITERATIONS[0]);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (number, rest) = part.split_at(part.find(ITERATIONS[1]).unwrap_or(0));
        text += ITERATIONS[0];
        text += &variable(number).map_or_else(|| REQUESTS_EACH.to_string(), |_| number.to_owned());
        text += rest;
    }
    text
}

/// Returns the numbers of iterations of a test file.
fn iterations(xml: &str) -> impl Iterator<Item = &str> {
    xml.split(ITERATIONS[0]).skip(1).filter_map(|part| Some(part.split_once(ITERATIONS[1])?.0))
}

/// Returns the name of the variable that a text is.
fn variable(text: &str) -> Option<&str> {
    text.trim().strip_prefix('{')?.strip_suffix('}')
}

/// Gives a variable that has the number of requests of a thread few of them.
fn set_variable(file: &mut Table, name: &str) {
    let few = Value::Integer(REQUESTS_EACH);
    for point in tables_of(file, "points").filter(|point| point.contains_key(name)) {
        point.insert(name.to_owned(), few.clone());
    }
    if let Some(values) = file.get_mut("sweep").and_then(|sweep| sweep.get_mut(name)) {
        *values = Value::Array(vec![few]);
    }
}

#[cfg(test)]
mod tests {
    use super::super::quick;
    use super::*;
    use crate::experiment::Experiment;

    #[test]
    fn the_quick_form_of_a_test_file_has_few_iterations() {
        let xml = "<numthreads>4</numthreads><iterations>{many}</iterations><iterations>7</iterations>";
        let few = "<numthreads>4</numthreads><iterations>{many}</iterations><iterations>2</iterations>";
        assert_eq!(with_few_iterations(xml), few);
        assert_eq!(with_few_iterations("<Tests/>"), "<Tests/>");
        let mut file: Table =
            format!("document = []\npoints = [{{ many = 70 }}]\nload.xml = \"{xml}\"").parse().unwrap();
        shorten(&mut file);
        assert_eq!(file["points"][0]["many"].as_integer(), Some(2));
    }

    #[test]
    fn trials_end_by_requests_also_where_the_points_have_the_time() {
        let text = "name = \"a\"\ndocument = []\npoints = [{ users = 1, time = \"6s\" }]\n\
                    [load]\nwarm_up = \"1s\"\n[[contenders]]\nname = \"a\"\nurl = \"http://h/\"\n";
        let quick = Experiment::parse(&quick(text).unwrap()).unwrap();
        let load = quick.settings(&quick.trials()[0]).unwrap().load;
        assert_eq!(load.arguments(), ["--users", "1", "--verify", "all", "--requests-each", "2"]);
    }

    #[test]
    fn the_quick_form_of_a_documents_table_has_the_rows_and_columns_that_are_left() {
        let text = r#"
            name = "whole"
            [[files]]
            name = "1K"
            size = "100MB"
            count = 10
            [load]
            time = "1s"
            [sweep]
            users = [1, 2, 4]
            pause = [1, 2, 3]
            [[contenders]]
            name = "a"
            url = "http://h/{}"
            variables = { unused = "{pause}" }
            [[document]]
            source = "document 001"
            title = "Rates"
            row = "users"
            rows = [1, 2, 4]
            [[document.columns]]
            title = "one"
            figure = "throughput"
            at = { pause = 1 }
            published = [10, 20, 40]
            [[document.columns]]
            title = "two"
            figure = "throughput"
            at = { pause = 2 }
        "#;
        Experiment::parse(text).unwrap();
        let quick = Experiment::parse(&quick(text).unwrap()).unwrap();
        let table = &quick.documents[0];
        assert_eq!(table.rows.iter().map(|row| row.0.as_str()).collect::<Vec<_>>(), ["1", "4"]);
        assert_eq!(table.columns.len(), 1);
        assert_eq!(
            table.columns[0].published.iter().map(|one| one.0.as_str()).collect::<Vec<_>>(),
            ["10", "40"]
        );
        assert_eq!(quick.settings(&quick.trials()[0]).unwrap().files.unwrap().bytes, 1_000_000);
    }
}
