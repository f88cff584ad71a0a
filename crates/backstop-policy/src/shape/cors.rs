//! `cors` of a route.

use crate::read::Need::{Default, Required};
use crate::read::{List, OneOrMany, table};
use crate::value::{EditableHeader, WebOrigin};

table! {
    /// Which pages may read the answers that are Backstop's own or an authorizer's: without these fields a browser tells the page
    /// nothing of them (the Fetch standard's CORS protocol). Answers of the dependency have their own. OPTIONS goes to the
    /// dependency.
    struct CorsTable {
        /// Origins of pages, such as `https://shop.example`, or `*` for all.
        "origins" origins: OneOrMany<WebOrigin> = Required;
        /// Whether a page may read them that sent credentials.
        "credentials" credentials: bool = Default("`false`");
        /// Fields that a page may read.
        "expose" expose: List<EditableHeader> = Default("`[\"backstop\", \"retry-after\"]`");
    }
}
