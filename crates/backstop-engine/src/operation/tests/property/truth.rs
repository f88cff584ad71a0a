//! What really happened, and what clients were told: kept by the test alone.

use crate::operation::Told;

#[derive(Debug, Default)]
pub(in super::super) struct Truth {
    keys: [Key; 3],
}

#[derive(Debug, Default)]
struct Key {
    effects: u32,
    forwards: u32,
    told_success: bool,
    told_failure: bool,
    told_not_executed: bool,
    told_new_key: bool,
    was_weaker: bool,
}

impl Truth {
    fn key(&mut self, key: u8) -> &mut Key {
        &mut self.keys[usize::from(key)]
    }

    pub(super) fn forwarded(&mut self, key: u8) {
        self.key(key).forwards += 1;
    }

    pub(super) fn executed(&mut self, key: u8) {
        self.key(key).effects += 1;
    }

    pub(super) fn has_effect(&self, key: u8) -> bool {
        self.keys[usize::from(key)].effects > 0
    }

    pub(super) fn told(&mut self, key: u8, told: &Told<'_>) {
        let key = self.key(key);
        let is_success = match told {
            Told::Replay(kept) => kept.status < 300,
            Told::StatusOnly(status) => *status < 300,
            Told::Executed(_) => true,
            _ => false,
        };
        key.was_weaker |= key.told_success && !is_success;
        key.told_success |= is_success;
        match told {
            Told::Replay(_) | Told::StatusOnly(_) | Told::Declined(_) => key.told_failure |= !is_success,
            Told::NotExecuted(why) => {
                key.told_not_executed = true;
                key.told_new_key |= why.is_never_sent();
            }
            _ => {}
        }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        for (number, key) in self.keys.iter().enumerate() {
            let rules = [
                (key.effects > 1, "more than one effect"),
                (key.forwards > 1, "more than one forward"),
                (key.told_success && key.effects == 0, "success told without effect"),
                (key.told_failure && key.effects > 0, "failure told, effect exists"),
                (key.told_not_executed && key.effects > 0, "not executed told, effect exists"),
                (key.told_new_key && key.forwards > 0, "a new key offered for what was sent"),
                (key.was_weaker, "an answer weaker than an earlier success"),
            ];
            if let Some((_, why)) = rules.into_iter().find(|(is_wrong, _)| *is_wrong) {
                return Err(format!("key {number}: {why}"));
            }
        }
        Ok(())
    }
}
