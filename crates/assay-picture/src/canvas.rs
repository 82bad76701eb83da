//! An SVG under construction: shapes, text, and the book of what text is where.

use std::fmt::Write as _;

use crate::style;

/// A rectangle that text takes up.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Taken {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

impl Taken {
    fn meets(&self, other: &Taken) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }
}

/// Where a text's given point is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Anchor {
    /// At its left end.
    Start,
    /// In its middle.
    Middle,
    /// At its right end.
    End,
}

/// A picture under construction.
pub struct Canvas {
    width: f64,
    height: f64,
    title: String,
    description: String,
    body: String,
    taken: Vec<Taken>,
}

impl Canvas {
    /// An empty picture. Title and description are for those who cannot see it.
    pub fn new(width: f64, height: f64, title: &str, description: &str) -> Canvas {
        Canvas {
            width,
            height,
            title: title.to_owned(),
            description: description.to_owned(),
            body: String::new(),
            taken: Vec::new(),
        }
    }

    /// A line of a width of `stroke`, of the classes given.
    pub fn line(&mut self, class: &str, stroke: f64, from: (f64, f64), to: (f64, f64)) {
        let _ = writeln!(
            self.body,
            r#"<line class="{class}" stroke-width="{}" x1="{}" y1="{}" x2="{}" y2="{}"/>"#,
            num(stroke),
            num(from.0),
            num(from.1),
            num(to.0),
            num(to.1)
        );
    }

    /// A rectangle from its upper left corner.
    pub fn rect(&mut self, class: &str, corner: (f64, f64), width: f64, height: f64) {
        let _ = writeln!(
            self.body,
            r#"<rect class="{class}" x="{}" y="{}" width="{}" height="{}"/>"#,
            num(corner.0),
            num(corner.1),
            num(width.max(0.0)),
            num(height.max(0.0))
        );
    }

    /// A circle.
    pub fn circle(&mut self, class: &str, center: (f64, f64), radius: f64) {
        let _ = writeln!(
            self.body,
            r#"<circle class="{class}" stroke-width="2" cx="{}" cy="{}" r="{}"/>"#,
            num(center.0),
            num(center.1),
            num(radius)
        );
    }

    /// Keeps text away from a rectangle that something else fills.
    pub fn keep_clear(&mut self, corner: (f64, f64), width: f64, height: f64) {
        let (left, top) = corner;
        self.taken.push(Taken { left, top, right: left + width, bottom: top + height });
    }

    /// Text whose baseline starts, centres or ends at a point, wherever others are.
    pub fn text(&mut self, class: &str, size: f64, anchor: Anchor, at: (f64, f64), text: &str) {
        self.taken.push(taken(size, anchor, at, text));
        self.write_text(class, size, anchor, at, text);
    }

    /// Text at the first of several places where it hides nothing and lies in the picture; says
    /// which. Where there is none it is left out.
    pub fn text_where_free(
        &mut self,
        class: &str,
        size: f64,
        places: &[(Anchor, (f64, f64))],
        text: &str,
    ) -> Option<usize> {
        let found = places.iter().position(|&(anchor, at)| {
            let wanted = taken(size, anchor, at, text);
            self.holds(&wanted) && !self.taken.iter().any(|other| other.meets(&wanted))
        })?;
        let (anchor, at) = places[found];
        self.text(class, size, anchor, at, text);
        Some(found)
    }

    fn holds(&self, area: &Taken) -> bool {
        area.left >= 0.0
            && area.top >= 0.0
            && area.right <= self.width
            && area.bottom <= self.height
    }

    fn write_text(&mut self, class: &str, size: f64, anchor: Anchor, at: (f64, f64), text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let _ = writeln!(
            self.body,
            r#"<text class="{class}" font-size="{}" text-anchor="{anchor}" {}>{}</text>"#,
            num(size),
            format_args!(r#"x="{}" y="{}""#, num(at.0), num(at.1)),
            escaped(text)
        );
    }

    /// The whole SVG.
    pub fn finish(self) -> String {
        let (width, height) = (num(self.width), num(self.height));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             role=\"img\" aria-labelledby=\"title description\">\n\
             <title id=\"title\">{}</title>\n<desc id=\"description\">{}</desc>\n\
             <style>{}</style>\n\
             <rect class=\"f-paper\" x=\"0\" y=\"0\" width=\"{width}\" height=\"{height}\"/>\n\
             {}</svg>\n",
            escaped(&self.title),
            escaped(&self.description),
            style::sheet(),
            self.body
        )
    }
}

/// How wide a text is at most, in the units of the picture: the widest of the common sans-serif
/// fonts decides for each sort of character.
pub(crate) fn text_width(size: f64, text: &str) -> f64 {
    let width = |c: char| match c {
        'i' | 'l' | 'j' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' | '·' | 'I' => 0.36,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '/' | '-' => 0.42,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '—' => 1.0,
        'A'..='Z' | '+' | '<' | '>' | '=' | '×' | '≤' | '≥' => 0.8,
        c if c.is_ascii() => 0.645,
        _ => 1.0,
    };
    size * text.chars().map(width).sum::<f64>()
}

/// A text cut to a width, with an ellipsis where something is missing.
pub(crate) fn fitted(size: f64, text: &str, width: f64) -> String {
    if text_width(size, text) <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        kept.push(c);
        if text_width(size, &kept) + size > width {
            kept.pop();
            break;
        }
    }
    kept + "…"
}

fn taken(size: f64, anchor: Anchor, at: (f64, f64), text: &str) -> Taken {
    let width = text_width(size, text);
    let left = match anchor {
        Anchor::Start => at.0,
        Anchor::Middle => at.0 - width / 2.0,
        Anchor::End => at.0 - width,
    };
    Taken { left, top: at.1 - 0.8 * size, right: left + width, bottom: at.1 + 0.25 * size }
}

/// A coordinate with two decimals at most: the same bytes everywhere.
fn num(value: f64) -> String {
    let value = if value.is_finite() { value } else { 0.0 };
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Text as XML can hold it; characters that XML forbids become `?`.
pub(crate) fn escaped(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => result.push_str("&amp;"),
            '<' => result.push_str("&lt;"),
            '>' => result.push_str("&gt;"),
            '"' => result.push_str("&quot;"),
            '\u{FFFE}' | '\u{FFFF}' => result.push('?'),
            c if c.is_control() => result.push(' '),
            c => result.push(c),
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_goes_to_the_first_place_that_is_free_and_nowhere_if_none_is() {
        let mut canvas = Canvas::new(100.0, 40.0, "t", "d");
        canvas.text("f-ink", 10.0, Anchor::Start, (10.0, 20.0), "abc");
        let near = (Anchor::Start, (12.0, 22.0));
        let free = (Anchor::Start, (60.0, 20.0));
        assert_eq!(canvas.text_where_free("f-ink", 10.0, &[near, free], "abc"), Some(1));
        assert_eq!(canvas.text_where_free("f-ink", 10.0, &[near, free], "abc"), None);
        let outside = (Anchor::Start, (95.0, 39.0));
        assert_eq!(canvas.text_where_free("f-ink", 10.0, &[outside], "abc"), None);
    }

    #[test]
    fn what_a_name_holds_cannot_break_out_of_its_text() {
        let mut canvas = Canvas::new(100.0, 40.0, "</title><script>", "\u{0}");
        canvas.text("f-ink", 10.0, Anchor::Start, (10.0, 20.0), "<b>&\"\u{1b}");
        let svg = canvas.finish();
        assert!(svg.contains("&lt;b&gt;&amp;&quot; "), "{svg}");
        assert!(!svg.contains("<script") && !svg.contains('\u{0}') && !svg.contains('\u{1b}'));
    }

    #[test]
    fn a_coordinate_that_is_no_number_is_drawn_at_zero() {
        assert_eq!([num(f64::NAN), num(-0.001), num(1.50), num(1e6)], ["0", "0", "1.5", "1000000"]);
    }

    #[test]
    fn a_long_text_is_cut_to_its_room() {
        assert_eq!(fitted(10.0, "short", 100.0), "short");
        let cut = fitted(10.0, "a_rather_long_kernel_name", 80.0);
        assert!(cut.ends_with('…') && text_width(10.0, &cut) <= 80.0, "{cut}");
    }
}
