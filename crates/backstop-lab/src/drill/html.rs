//! A report as one page that needs nothing else: light and dark, for a screen and for paper.

use std::fmt::Write as _;

use backstop_chart::COLOURS;

use super::{DrillReport, Finding, Report, Verdict, plots::plots};

const STYLE: &str = "\
*{box-sizing:border-box}body{margin:0 auto;max-width:72rem;padding:1.5rem;font:16px/1.5 system-ui,sans-serif;\
color:var(--chart-ink);background:var(--chart-ground)}h1,h2{line-height:1.2}h2{margin-top:2.5rem;border-top:1px solid \
var(--chart-grid);padding-top:1.5rem}table{border-collapse:collapse;width:100%;font-size:.9rem}th,td{text-align:left;\
vertical-align:top;padding:.35rem .6rem;border-bottom:1px solid var(--chart-grid)}.wide{overflow-x:auto}\
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,20rem),1fr));gap:1rem;margin:1rem 0}\
figure{margin:0;max-width:36rem}svg{width:100%;height:auto}.word{font-weight:600;white-space:nowrap}.held{color:var(--chart-normal)}\
.failed{color:var(--chart-failed)}.nothing{color:var(--chart-abandoned)}ul{margin:.2rem 0;padding-left:1.2rem}\
a{color:var(--chart-first)}nav ul{columns:2 18rem;list-style:none;padding:0}\
@media print{body{max-width:none;padding:0;font-size:11pt}h2{break-before:page}tr,figure{break-inside:avoid}nav{display:none}}";

/// The page.
#[must_use]
pub fn html(report: &Report) -> String {
    let verdict = if report.held { ("held", "Everything held") } else { ("failed", "Not everything held") };
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width,initial-scale=1\"><meta name=\"color-scheme\" content=\"light dark\">\
         <title>Drill of {policy}</title><style>{COLOURS}{STYLE}</style></head><body><main>\
         <h1>Drill of {policy}</h1><p class=\"word {class}\">{words}</p><p>Chance was drawn from seed {seed}.</p>",
        policy = escaped(&report.policy),
        class = verdict.0,
        words = verdict.1,
        seed = report.seed
    );
    page.push_str("<nav aria-label=\"Drills\"><ul>");
    for (number, drill) in report.drills.iter().enumerate() {
        let name = escaped(&drill.name);
        let _infallible =
            write!(page, "<li>{} <a href=\"#drill-{number}\">{name}</a></li>", word(drill.verdict));
    }
    page.push_str("</ul></nav>");
    for (number, drill) in report.drills.iter().enumerate() {
        section(&mut page, drill, number);
    }
    if !report.skipped.is_empty() {
        page.push_str("<h2>Nothing to rehearse</h2><ul>");
        for skipped in &report.skipped {
            let _infallible = write!(page, "<li>{}: {}</li>", escaped(&skipped.name), escaped(&skipped.why));
        }
        page.push_str("</ul>");
    }
    page.push_str("</main></body></html>\n");
    page
}

fn section(page: &mut String, drill: &DrillReport, number: usize) {
    let _infallible = write!(
        page,
        "<section id=\"drill-{number}\" aria-labelledby=\"title-{number}\"><h2 id=\"title-{number}\">{}</h2>\
         <p>{} {}. {} requests in {:.1} s.</p><div class=\"plots\">",
        escaped(&drill.name),
        word(drill.verdict),
        escaped(&drill.about),
        drill.requests,
        drill.took_s
    );
    for plot in plots(drill, &format!("drill-{number}")) {
        let _infallible = write!(page, "<figure>{}</figure>", plot.as_str());
    }
    page.push_str("</div><div class=\"wide\"><table><thead><tr><th scope=\"col\">Result</th><th scope=\"col\">Check</th>\
                   <th scope=\"col\">What had to hold</th><th scope=\"col\">Looked at</th></tr></thead><tbody>");
    for finding in &drill.findings {
        row(page, finding);
    }
    page.push_str("</tbody></table></div><h3>Answers</h3><div class=\"wide\"><table><tbody>");
    for (answer, count) in &drill.answers {
        let _infallible = write!(page, "<tr><td>{}</td><td>{count}</td></tr>", escaped(answer));
    }
    page.push_str("</tbody></table></div>");
    if !drill.skipped.is_empty() {
        page.push_str("<h3>Routes that it does not concern</h3><ul>");
        for skipped in &drill.skipped {
            let _infallible = write!(page, "<li>{}: {}</li>", escaped(&skipped.name), escaped(&skipped.why));
        }
        page.push_str("</ul>");
    }
    page.push_str("</section>");
}

fn row(page: &mut String, finding: &Finding) {
    let _infallible = write!(
        page,
        "<tr><td>{}</td><td>{}</td><td>{}",
        word(finding.verdict),
        escaped(&finding.name),
        escaped(&finding.promise)
    );
    if !finding.examples.is_empty() {
        page.push_str("<ul>");
        for example in &finding.examples {
            let _infallible = write!(page, "<li>{}</li>", escaped(example));
        }
        page.push_str("</ul>");
    }
    let failed = if finding.failed > 0 { format!(", {} not", finding.failed) } else { String::new() };
    let _infallible = write!(page, "</td><td>{}{failed}</td></tr>", finding.checked);
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Held => "<span class=\"word held\">\u{2713} held</span>",
        Verdict::Failed => "<span class=\"word failed\">\u{2717} failed</span>",
        Verdict::Nothing => "<span class=\"word nothing\">\u{2013} nothing to look at</span>",
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
