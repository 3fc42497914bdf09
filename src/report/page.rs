//! Self-contained pages: no script, no style sheet and no picture from elsewhere; light or dark as the reader likes, and
//! readable on a phone.

/// The page of this title around a body of HTML.
pub fn document(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{body}</body>\n</html>\n",
        title = escaped(title)
    )
}

/// A picture with its title and a line that says what it was measured on. All text but the picture is escaped.
pub fn figure(title: &str, note: &str, legend: &[&str], svg: &str) -> String {
    let mut caption = format!("<figcaption><b>{}</b>", escaped(title));
    if !note.is_empty() {
        caption.push_str(&format!("<br><small>{}</small>", escaped(note)));
    }
    if !legend.is_empty() {
        let marks = ["●", "■", "▲", "◆"];
        let one = |(style, name): (usize, &&str)| {
            format!(
                "<span class=\"key\"><span class=\"s{0}\">{1}</span> {2}</span>",
                style % 4,
                marks[style % 4],
                escaped(name)
            )
        };
        let names: Vec<String> = legend.iter().enumerate().map(one).collect();
        caption.push_str(&format!("<br>{}", names.join("\n")));
    }
    format!("<figure>\n{caption}</figcaption>\n{svg}</figure>\n")
}

/// How much room a figure wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Four side by side on a large screen.
    Small,
    /// Two or three.
    Large,
}

/// Figures side by side where there is room.
pub fn side_by_side(figures: &[String], size: Size) -> String {
    let class = if size == Size::Large { "figures large" } else { "figures" };
    format!("<div class=\"{class}\">\n{}</div>\n", figures.concat())
}

/// A table; cells are text, the first of a row stands left and the others right.
pub fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let line = |tag: &str, cells: &mut dyn Iterator<Item = &str>| {
        let cells: String = cells.map(|c| format!("<{tag}>{}</{tag}>", escaped(c))).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let head = line("th", &mut headings.iter().copied());
    let body: String = rows.iter().map(|row| line("td", &mut row.iter().map(String::as_str))).collect();
    format!("<div class=\"wide\"><table>\n<thead>{head}</thead>\n<tbody>\n{body}</tbody>\n</table></div>\n")
}

/// Text as it has to be written in HTML and SVG.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Colours that differ in lightness too, for readers who cannot tell red from green.
const STYLE: &str = ":root{--paper:#fff;--ink:#1c1c1e;--quiet:#5f6368;--rule:#dcdcdc;--on:#fff;\
--s0:#0b5cad;--s1:#b3470b;--s2:#1d7a4c;--s3:#7a3fa8;--block:#f4f4f5;--added:#d8f5d8;--removed:#fbdcdc}
@media (prefers-color-scheme:dark){:root{--paper:#16181c;--ink:#e8e8ea;--quiet:#a0a4ab;--rule:#34373d;--on:#0d0f12;\
--s0:#6db3f8;--s1:#f2a05e;--s2:#67cf98;--s3:#c79af0;--block:#20232a;--added:#17402a;--removed:#4f2020}}
body{font:16px/1.5 system-ui,sans-serif;background:var(--paper);color:var(--ink);max-width:76rem;margin:1.5rem auto;padding:0 1rem}
p,li{max-width:50rem}h1{font-size:1.6rem;line-height:1.2;overflow-wrap:anywhere}h2{font-size:1.2rem;margin-top:2.2rem}small,.quiet{color:var(--quiet)}
.figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,17rem),1fr));gap:1.4rem}
.large{grid-template-columns:repeat(auto-fill,minmax(min(100%,26rem),1fr))}
figure{margin:0}figcaption{font-size:.92rem;line-height:1.35;margin-bottom:.3rem}svg{display:block;width:100%;height:auto}
svg text{font:11px system-ui,sans-serif;fill:var(--quiet)}svg .cell{font-size:8px;fill:var(--ink)}svg .cell.on{fill:var(--on)}
.grid{stroke:var(--rule)}.line{fill:none;stroke-width:1.6}.wide{overflow-x:auto}
.key{display:inline-block;margin-right:.9rem}
.s0{color:var(--s0)}.s1{color:var(--s1)}.s2{color:var(--s2)}.s3{color:var(--s3)}
svg .line,svg .path{stroke:currentColor}.path{fill:none;stroke-opacity:.45}
.roof,.sample{stroke:var(--ink);stroke-width:1.2}.dashed{stroke-dasharray:4 3}.leader{stroke:var(--quiet);stroke-width:.5}
svg .name{fill:var(--ink);paint-order:stroke;stroke:var(--paper);stroke-width:2.5}
svg .mark{fill:currentColor}svg .heat{fill:var(--s0)}
table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}
th,td{padding:.15rem .7rem .15rem 0;text-align:right;border-bottom:1px solid var(--rule);white-space:nowrap}
th:first-child,td:first-child,.named td:nth-child(2),.named th:nth-child(2){text-align:left}
pre{background:var(--block);padding:.8rem;overflow-x:auto;font-size:13px;line-height:1.35}
ins{background:var(--added);text-decoration:none}del{background:var(--removed);text-decoration:none}a{color:var(--s0)}
.wrong{color:var(--s1);font-weight:bold}.bar{fill:var(--s0)}.reference{stroke:var(--s1);stroke-dasharray:4 3}
h3{font-size:1rem;margin:1.2rem 0 .4rem}.named th{white-space:normal;vertical-align:bottom}.change{max-width:50rem}.change td,.change th{white-space:normal;vertical-align:top}.change td:last-child,.change th:last-child{text-align:left}
summary{cursor:pointer;margin-top:1rem}mark{background:var(--removed);color:inherit}code{font-size:.85em;overflow-wrap:anywhere}
";

#[cfg(test)]
mod tests {
    use super::{document, escaped, figure, table};

    #[test]
    fn text_is_escaped_wherever_it_comes_from() {
        let evil = "<script>alert(\"&\")</script>";
        assert_eq!(escaped(evil), "&lt;script&gt;alert(&quot;&amp;&quot;)&lt;/script&gt;");
        let rows = [vec![evil.to_string()]];
        let body = figure(evil, evil, &[evil], "<svg/>") + &table(&[evil], &rows);
        let page = document(evil, &body);
        assert!(!page.contains("<script"), "{page}");
        assert_eq!(page.matches("&lt;script&gt;").count(), 7);
    }

    #[test]
    fn a_page_needs_nothing_from_elsewhere_and_knows_light_and_dark() {
        let page = document("t", "");
        assert!(page.contains("prefers-color-scheme:dark") && page.contains("width=device-width"));
        for foreign in ["http", "<script", "<link", "@import", "url("] {
            assert!(!page.contains(foreign), "{foreign}");
        }
    }
}
