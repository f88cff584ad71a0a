//! What every picture keeps, whatever it is given.
#![expect(clippy::expect_used, reason = "helpers of tests stop the test")]

use backstop_chart::{
    Band, Clock, Frame, Hue, Layer, Line, Marker, Ramp, Row, Scale, Span, Svg, lines, ramp, stacked, timeline,
};

fn frame(id: &str) -> Frame {
    let bands =
        vec![Band { from_s: -40.0, to_s: -10.0, hue: Hue::Failed, label: "catalog refused".to_owned() }];
    let markers = vec![Marker { at_s: -40.0, label: "began".to_owned() }];
    Frame::new(
        id,
        "What <catalog> & \"others\" did",
        "It's a 'description'",
        Span::new(-60.0, 0.0, Clock::Ago),
    )
    .with_bands(bands)
    .with_markers(markers)
}

fn all(frame: &Frame, value: f64, name: &str) -> Vec<Svg> {
    let moments: Vec<f64> = (0..12).map(|at| -60.0 + 5.0 * f64::from(at)).collect();
    let points: Vec<_> = moments.iter().map(|at| (*at, Some(value))).collect();
    let layers = [
        Layer::new(name, Hue::Normal, vec![value; 12]),
        Layer::new("copies", Hue::Fallback, vec![value; 12]),
        Layer::new("refused", Hue::Rejected, vec![1.0; 12]),
    ];
    let band = Band { from_s: -50.0, to_s: -5.0, hue: Hue::Fallback, label: name.to_owned() };
    vec![
        stacked(frame, &moments, &layers, &Scale::Shares),
        stacked(frame, &moments, &layers, &Scale::Absolute { caption: "requests per second".to_owned() }),
        lines(frame, "milliseconds", &[Line::new(name, Hue::First, points.clone())]),
        ramp(frame, &Ramp { allowed: points.clone(), received: points, before_per_s: Some(value) }),
        timeline(frame, &[Row { name: name.to_owned(), bands: vec![band] }]),
    ]
}

/// Elements are closed in the order they were opened, quotes come in pairs, and `<` begins nothing but a tag.
fn assert_well_formed(svg: &str) {
    let mut open = Vec::new();
    let mut rest = svg;
    while let Some(at) = rest.find('<') {
        let end = at + rest[at..].find('>').expect("a tag ends");
        let tag = &rest[at + 1..end];
        assert_eq!(tag.matches('"').count() % 2, 0, "quotes in pairs: <{tag}>");
        let name = tag.trim_start_matches('/').split([' ', '/']).next().expect("a name");
        assert!(name.chars().all(|letter| letter.is_ascii_alphabetic()), "a tag: <{tag}>");
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "closed in order");
        } else if !tag.ends_with('/') {
            open.push(name);
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty(), "still open: {open:?}");
}

#[test]
fn every_picture_has_a_role_a_title_and_a_description() {
    for svg in all(&frame("one"), 3.0, "normal") {
        let svg = svg.as_str();
        assert!(svg.starts_with("<svg class=\"chart\" role=\"img\""), "{svg}");
        assert!(svg.contains("<title>What &lt;catalog&gt; &amp; &quot;others&quot; did</title>"));
        assert!(svg.contains("<desc>It&#39;s a &#39;description&#39;</desc>"));
        assert_well_formed(svg);
    }
}

#[test]
fn names_from_elsewhere_can_neither_break_out_nor_take_a_colour() {
    for svg in all(&frame("one"), 3.0, "</text><script>\"#010001\" opacity=\"1\"") {
        let svg = svg.as_str();
        assert_well_formed(svg);
        assert!(!svg.contains("<script"));
    }
}

#[test]
fn no_colour_is_left_that_css_cannot_change() {
    for svg in all(&frame("one"), 3.0, "normal") {
        assert!(!svg.as_str().contains("\"#"), "{svg}");
        assert!(svg.as_str().contains("var(--chart-ink, #1f2937)"));
    }
}

#[test]
fn the_same_input_gives_the_same_text_and_identities_are_the_callers() {
    assert_eq!(all(&frame("one"), 3.0, "normal"), all(&frame("one"), 3.0, "normal"));
    let svg = &all(&frame("a \"b\" <c>"), 3.0, "normal")[0];
    assert!(svg.as_str().contains("<pattern id=\"abc-fallback\""));
    assert!(svg.as_str().contains("fill=\"url(#abc-fallback)\""));
}

#[test]
fn what_is_no_number_does_no_harm() {
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.0, f64::MIN_POSITIVE] {
        for svg in all(&frame("one"), value, "normal") {
            assert!(!svg.as_str().contains("NaN") && !svg.as_str().contains("inf"), "{value}");
            assert!(svg.as_str().ends_with("</svg>"), "{value}");
        }
    }
}

#[test]
fn nothing_to_show_is_a_picture_too() {
    let frame = Frame::new("none", "Nothing", "Nothing was asked", Span::new(0.0, 0.0, Clock::Elapsed));
    let nothing = Ramp { allowed: Vec::new(), received: Vec::new(), before_per_s: None };
    for svg in [
        stacked(&frame, &[], &[], &Scale::Shares),
        lines(&frame, "milliseconds", &[]),
        ramp(&frame, &nothing),
        timeline(&frame, &[]),
    ] {
        assert_well_formed(svg.as_str());
    }
}

#[test]
fn a_long_series_gives_a_short_picture() {
    let points: Vec<_> =
        (0..100_000).map(|at| (-60.0 + f64::from(at) * 0.0006, Some(f64::from(at % 7)))).collect();
    let svg = lines(&frame("long"), "calls per second", &[Line::new("calls", Hue::First, points)]);
    assert!(svg.as_str().len() < 16 * 1024, "{}", svg.as_str().len());
}

#[test]
fn shares_of_a_sample_are_drawn_to_a_hundred_and_a_sample_without_requests_is_a_gap() {
    let span = Span::new(0.0, 30.0, Clock::Elapsed);
    let frame = Frame::new("gap", "Gap", "Nothing was asked between 10 and 20", span).sized(400, 160);
    let layers = [Layer::new("normal", Hue::Normal, [1.0, 0.0, 3.0])];
    let svg = stacked(&frame, &[0.0, 10.0, 20.0], &layers, &Scale::Shares);
    let areas = svg.as_str().matches("<polygon").count();
    assert_eq!(areas, 2, "one before the gap and one after it: {svg}");
}

#[test]
fn the_picture_of_a_known_incident() {
    let svgs = all(&frame("known"), 3.0, "normal");
    let text: Vec<_> = svgs.iter().map(|svg| svg.as_str().replace("><", ">\n<")).collect();
    insta::assert_snapshot!(text.join("\n\n"));
}
