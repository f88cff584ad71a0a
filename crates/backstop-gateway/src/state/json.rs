//! Reading what was written: every value by its path, or the path of what is wrong.

use std::time::Duration;

use backstop_engine::incident::Moment;
use backstop_engine::time::{BootId, Mono, Wall};
use serde_json::{Map, Value, json};

/// The form of all files; another one is not understood.
pub(crate) const VERSION: u64 = 1;

/// What a file should hold and does not.
#[derive(Debug, thiserror::Error)]
#[error("`{path}` is no {expected}")]
pub(crate) struct Damaged {
    path: String,
    expected: &'static str,
}

impl Damaged {
    /// The value at `path` is something else.
    pub(crate) fn new(path: impl Into<String>, expected: &'static str) -> Self {
        Self { path: path.into(), expected }
    }
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct At<'a> {
    value: &'a Value,
    path: String,
}

impl<'a> At<'a> {
    /// The whole of a file of this form.
    pub(crate) fn whole(value: &'a Value) -> Result<Self, Damaged> {
        let whole = Self { value, path: String::new() };
        if whole.get("version").u64()? == VERSION {
            Ok(whole)
        } else {
            Err(whole.get("version").no("known form"))
        }
    }

    /// What stands under a key; nothing where there is no such key.
    pub(crate) fn get(&self, key: &str) -> Self {
        let path = if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        Self { value: self.value.get(key).unwrap_or(&Value::Null), path }
    }

    pub(crate) fn u64(&self) -> Result<u64, Damaged> {
        self.value.as_u64().ok_or_else(|| self.no("whole number"))
    }

    pub(crate) fn u32(&self) -> Result<u32, Damaged> {
        u32::try_from(self.u64()?).map_err(|_| self.no("number below 2^32"))
    }

    pub(crate) fn i64(&self) -> Result<i64, Damaged> {
        self.value.as_i64().ok_or_else(|| self.no("whole number"))
    }

    pub(crate) fn f64(&self) -> Result<f64, Damaged> {
        self.value.as_f64().ok_or_else(|| self.no("number"))
    }

    pub(crate) fn text(&self) -> Result<&'a str, Damaged> {
        self.value.as_str().ok_or_else(|| self.no("text"))
    }

    pub(crate) fn ns(&self) -> Result<Duration, Damaged> {
        self.u64().map(Duration::from_nanos)
    }

    pub(crate) fn moment(&self) -> Result<Moment, Damaged> {
        let boot = self.get("boot");
        let id = u128::from_str_radix(boot.text()?, 16).map_err(|_| boot.no("boot"))?;
        Ok(Moment {
            mono: Mono::from_ns(self.get("boot_ns").u64()?),
            wall: Wall::from_unix_ns(self.get("unix_ns").i64()?),
            boot: BootId(id.to_be_bytes()),
        })
    }

    /// Each element of a list.
    pub(crate) fn list<T>(&self, read: impl Fn(&At<'a>) -> Result<T, Damaged>) -> Result<Vec<T>, Damaged> {
        let list = self.value.as_array().ok_or_else(|| self.no("list"))?;
        let at = |(index, value)| At { value, path: format!("{}[{index}]", self.path) };
        list.iter().enumerate().map(at).map(|at| read(&at)).collect()
    }

    /// Each key with what stands under it.
    pub(crate) fn entries(&self) -> Result<impl Iterator<Item = (&'a str, At<'a>)>, Damaged> {
        let map: &'a Map<String, Value> = self.value.as_object().ok_or_else(|| self.no("object"))?;
        Ok(map.iter().map(|(key, value)| (key.as_str(), At { value, path: format!("{}.{key}", self.path) })))
    }

    /// The same unless it is absent or null.
    pub(crate) fn some(&self) -> Option<&Self> {
        (!self.value.is_null()).then_some(self)
    }

    /// The complaint that it is something else.
    pub(crate) fn no(&self, expected: &'static str) -> Damaged {
        Damaged::new(self.path.clone(), expected)
    }
}

/// A moment for people, and for the next start.
pub(crate) fn moment(moment: &Moment) -> Value {
    json!({
        "date": moment.date(),
        "unix_ns": moment.wall.as_unix_ns(),
        "boot_ns": moment.mono.as_ns(),
        "boot": format!("{:032x}", u128::from_be_bytes(moment.boot.0)),
    })
}

/// Whole nanoseconds, as far as they can be counted.
pub(crate) fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A file's text.
pub(crate) fn text(value: &Value) -> String {
    format!("{value:#}\n")
}
