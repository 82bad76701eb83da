//! What must hold between the parts of a spec before anything runs.

use assay_reference::{Dims, Extent};

use super::error::{ManifestError, nearest_hint};
use super::reader::Table;
use crate::spec::{ArgumentSpec, LaunchSpec, Role, Spec, shown};

/// Checks arguments, shapes and launches against each other and at every served shape.
pub(super) fn check_spec(table: &Table<'_>, spec: &Spec) -> Result<(), ManifestError> {
    check_outputs(table, spec)?;
    check_arguments(table, spec)?;
    check_launches(table, spec)?;
    check_used(table, spec)
}

fn check_outputs(table: &Table<'_>, spec: &Spec) -> Result<(), ManifestError> {
    if spec.arguments.iter().any(|argument| argument.role == Role::Out) {
        return Ok(());
    }
    let args = table.need("args")?;
    Err(args.error("no argument has the role `out`, so nothing would be judged"))
}

fn check_arguments(table: &Table<'_>, spec: &Spec) -> Result<(), ManifestError> {
    for (argument, entry) in spec.arguments.iter().zip(table.need("args")?.list()?) {
        check_argument(argument, spec).map_err(|(message, hint)| {
            entry.error(format!("argument `{}`: {message}", argument.name)).maybe_hint(hint)
        })?;
    }
    Ok(())
}

type Complaint = (String, Option<String>);

fn check_argument(argument: &ArgumentSpec, spec: &Spec) -> Result<(), Complaint> {
    if argument.role == Role::Dim && argument.extent.is_none() && no_dim(&argument.name, spec) {
        let hint = "give the dim, or `value` as an expression of dims".to_owned();
        return Err((format!("there is no dim `{}`", argument.name), Some(hint)));
    }
    if argument.role == Role::InOut && !spec.in_place.iter().any(|(_, i)| *i == argument.name) {
        let hint = "add in_place = [[output, input]]".to_owned();
        return Err(("an `inout` needs an output that overwrites it".to_owned(), Some(hint)));
    }
    for dims in spec.served() {
        check_range(argument, &dims, spec)?;
        for extent in argument.shape.iter().chain(&argument.extent) {
            at_least(extent, &dims, 1, spec)?;
        }
        for stride in argument.strides.iter().flatten() {
            at_least(stride, &dims, 0, spec)?;
        }
    }
    Ok(())
}

/// A promised range holds something, all of it values of the type, and enough where distinct.
fn check_range(argument: &ArgumentSpec, dims: &Dims, spec: &Spec) -> Result<(), Complaint> {
    let Some([from, to]) = &argument.limits.range else { return Ok(()) };
    let (format, at) = (argument.format, shown(dims));
    let low = at_least(from, dims, format.min_finite() as i64, spec)?;
    let high = at_least(to, dims, low + 1, spec)?;
    if (high - 1) as f64 > format.max_finite() {
        return Err((format!("{} is no {} at {at}", high - 1, format.name()), None));
    }
    let count: i64 =
        argument.shape.iter().map(|extent| extent.eval(dims).unwrap_or(1).max(1)).product();
    if argument.limits.distinct && count > high - low {
        let message = format!("{count} elements, but {} distinct values at {at}", high - low);
        return Err((message, None));
    }
    Ok(())
}

fn no_dim(name: &str, spec: &Spec) -> bool {
    !spec.dims.contains_key(name)
}

/// Evaluates an extent at a served shape.
fn at_least(extent: &Extent, dims: &Dims, least: i64, spec: &Spec) -> Result<i64, Complaint> {
    let value = extent.eval(dims).map_err(|error| {
        let known: Vec<&str> = spec.dims.keys().map(String::as_str).collect();
        let hint = format!("the dims are {}", super::error::quoted(&known));
        (format!("`{extent}`: {error}"), Some(hint))
    })?;
    if value < least {
        let at = shown(dims);
        return Err((format!("`{extent}` gives {value} at {at}, below {least}"), None));
    }
    Ok(value)
}

fn check_launches(table: &Table<'_>, spec: &Spec) -> Result<(), ManifestError> {
    for (launch, entry) in spec.launches.iter().zip(table.need("launches")?.list()?) {
        let launch_table = entry.any_table()?;
        for (name, at) in launch.arguments.iter().zip(launch_table.need("args")?.list()?) {
            if spec.argument(name).is_none() {
                let known: Vec<&str> = spec.arguments.iter().map(|a| a.name.as_str()).collect();
                let error = at.error(format!("no argument is called `{name}`"));
                return Err(error.maybe_hint(nearest_hint(name, &known)));
            }
        }
        check_sizes(launch, &launch_table, spec)?;
    }
    Ok(())
}

fn check_sizes(launch: &LaunchSpec, table: &Table<'_>, spec: &Spec) -> Result<(), ManifestError> {
    let triples = [("grid", &launch.grid), ("block", &launch.block), ("cluster", &launch.cluster)];
    for dims in spec.served() {
        for (key, triple) in triples {
            for extent in triple {
                at_least(extent, &dims, 1, spec)
                    .map_err(|complaint| place(table, key, complaint))?;
            }
        }
        at_least(&launch.shared, &dims, 0, spec).map_err(|c| place(table, "shared", c))?;
    }
    Ok(())
}

fn place(table: &Table<'_>, key: &str, (message, hint): Complaint) -> ManifestError {
    let entry = table.get(key);
    let error =
        entry.map_or_else(|| table.entry.error(&message), |e| e.error(format!("{key}: {message}")));
    error.maybe_hint(hint)
}

/// A buffer that no launch passes can be neither read nor written.
fn check_used(table: &Table<'_>, spec: &Spec) -> Result<(), ManifestError> {
    for (argument, entry) in spec.arguments.iter().zip(table.need("args")?.list()?) {
        let passed = spec.launches.iter().any(|launch| launch.arguments.contains(&argument.name));
        let overwrites = spec.in_place_of(&argument.name).and_then(|input| spec.argument(input));
        let inside = overwrites.is_some_and(|input| input.role == Role::InOut);
        if argument.role.is_buffer() && !passed && !inside {
            let error = entry.error(format!("no launch passes `{}`", argument.name));
            return Err(error.hint("name it in a launch's `args`, or remove it"));
        }
    }
    Ok(())
}
