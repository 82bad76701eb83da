//! Draws stamps: `cargo run -p assay-picture --example stamps -- records/h200-stamps.json out.svg`.

use std::error::Error;

use assay_picture::timeline;
use assay_record::StampRecord;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(file), Some(picture)) = (arguments.next(), arguments.next()) else {
        return Err("give a file of stamps and one for the picture".into());
    };
    let record: StampRecord = serde_json::from_str(&std::fs::read_to_string(file)?)?;
    Ok(std::fs::write(picture, timeline(&record))?)
}
