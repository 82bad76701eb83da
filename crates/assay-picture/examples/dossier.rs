//! Draws a dossier: `cargo run -p assay-picture --example dossier -- h200.json docs` writes
//! `docs/h200-roofline.svg` and `docs/h200-latencies.svg`.

use std::error::Error;
use std::path::Path;

use assay_picture::{Roofline, dossier_ladder, roofline};
use assay_record::Dossier;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(file), Some(folder)) = (arguments.next(), arguments.next()) else {
        return Err("give a dossier's file and a folder for the pictures".into());
    };
    let dossier = Dossier::from_json(&std::fs::read_to_string(&file)?)?;
    let name = Path::new(&file).file_stem().unwrap_or_default().to_string_lossy();
    let save = |kind: &str, svg: String| {
        std::fs::write(Path::new(&folder).join(format!("{name}-{kind}.svg")), svg)
    };
    save("roofline", roofline(&Roofline::of(&dossier)))?;
    save("latencies", dossier_ladder(&dossier))?;
    Ok(())
}
