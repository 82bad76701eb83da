//! Draws stored records as SVG: rooflines, histograms, latency ladders, timelines, heat maps.
//!
//! A picture is made from a record and nothing else, so the same record gives the same bytes.
