//! The points of an experiment: all combinations of the sweep, and the listed ones.
//!
//! It plans no trial. Invariant: the points of a sweep are counted before they are made:
//! there are [`TRIALS_MAX`] at most.

use anyhow::{Context as _, Result, anyhow, ensure};

use super::limits::TRIALS_MAX;
use super::template::Values;
use super::value::Scalar;

/// Returns the variables of a sweep with their values.
pub(super) fn swept(table: toml::Table) -> Result<Vec<(String, Vec<Scalar>)>> {
    let values = |(name, value): (String, toml::Value)| {
        let values: Vec<Scalar> = value
            .try_into()
            .map_err(|_| anyhow!("`sweep.{name}` must be a list of values, such as [1, 2, 4]"))?;
        ensure!(!values.is_empty(), "`sweep.{name}` is empty");
        for (at, value) in values.iter().enumerate() {
            let is_twice = values[..at].contains(value);
            ensure!(!is_twice, "`sweep.{name}` has {} twice: leave one out", value.0);
        }
        Ok((name, values))
    };
    table.into_iter().map(values).collect()
}

/// Returns the product of all values of the sweep, for each of the listed points.
pub(super) fn points(sweep: &[(String, Vec<Scalar>)], listed: &[toml::Table]) -> Result<Vec<Values>> {
    let mut points: Vec<Values> = vec![Values::new()];
    for (name, values) in sweep {
        let with = |point: &Values, value: &Scalar| {
            let mut point = point.clone();
            point.insert(name.clone(), value.0.clone());
            point
        };
        let count = points.len().saturating_mul(values.len());
        ensure!(count <= TRIALS_MAX, "the sweep has {count} points; {TRIALS_MAX} are possible");
        points = points.iter().flat_map(|point| values.iter().map(|value| with(point, value))).collect();
    }
    if listed.is_empty() {
        return Ok(points);
    }
    let mut all = Vec::new();
    for swept in points {
        for table in listed {
            let mut point = swept.clone();
            for (name, value) in table {
                let value: Scalar = value.clone().try_into().with_context(|| format!("`points.{name}`"))?;
                let before = point.insert(name.clone(), value.0);
                ensure!(before.is_none(), "`sweep` and `points` both have `{name}`: leave it out of one");
            }
            all.push(point);
        }
    }
    Ok(all)
}
