//! The shop's services. Each product says when it was made.

use backstop_lab::clock::monotonic_ns;
use backstop_lab::origin::{Answer, Behaviour, Matcher, Origin, Request};

/// Products that there are.
pub(super) const PRODUCTS: u32 = 20;
/// Languages that they are described in.
pub(super) const LANGUAGES: [&str; 2] = ["es", "en"];

/// Makes an origin a product service that works, whatever it did before.
pub(super) fn open_products(origin: &Origin) {
    origin.on(Matcher::any(), Behaviour::from_fn(product));
}

/// Makes an origin a recommender that works.
pub(super) fn open_recommendations(origin: &Origin) {
    origin.on(Matcher::any(), Behaviour::json(r#"["4","8","15"]"#));
}

fn product(request: &Request) -> Answer {
    let id = request.path().rsplit('/').next().unwrap_or_default().to_owned();
    let wanted = request.header("accept-language").unwrap_or_default();
    let language = LANGUAGES.into_iter().find(|known| wanted.starts_with(known)).unwrap_or("en");
    let text = if language == "es" { format!("Producto {id}") } else { format!("Product {id}") };
    let made_ns = monotonic_ns();
    Answer::json(format!(r#"{{"id":"{id}","text":"{text}","lang":"{language}","made_ns":{made_ns}}}"#))
}
