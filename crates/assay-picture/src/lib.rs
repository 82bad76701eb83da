//! Draws stored records as SVG: rooflines, histograms, latency ladders, timelines, heat maps.
//!
//! A picture is made from a record and nothing else, so the same record gives the same bytes. The
//! SVG stands alone: no scripts, no fonts or files from elsewhere, colours that suit a light and a
//! dark page. Text is placed by a bookkeeper that knows what is there already ([`Canvas`]), so that
//! no label hides another.

mod bench;
mod canvas;
mod distributions;
mod dossier;
mod heat;
mod histogram;
mod ladder;
mod roofline;
mod scale;
mod style;
mod timeline;

pub use canvas::{Anchor, Canvas};
pub use distributions::{Distribution, Distributions, Effects, distributions};
pub use dossier::dossier_ladder;
pub use heat::heat_map;
pub use histogram::{Histogram, histogram};
pub use ladder::{Rung, ladder};
pub use roofline::{
    COUNTING_TOLERANCE, Placement, Roof, RoofKind, RoofSource, Roofline, RooflinePoint, roofline,
};
pub use timeline::timeline;
