//! What buyers pay for in the tests.

use actors::kinds::commerce::checkouts::Price;
use contract::{CommerceChannelId, Id, money::Amount, text::PlanCode};
use ulid::Ulid;

pub fn channel() -> CommerceChannelId {
    Id::of(Ulid(5))
}

/// What is paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    Lines,
    Plan,
    Shop,
    PlanInShop,
}

pub const ALL: [Of; 4] = [Of::Lines, Of::Plan, Of::Shop, Of::PlanInShop];

impl Of {
    pub fn is_plan(self) -> bool {
        matches!(self, Of::Plan | Of::PlanInShop)
    }

    pub fn is_order(self) -> bool {
        matches!(self, Of::Shop | Of::PlanInShop)
    }
}

pub fn price(of: Of) -> Price {
    match of {
        Of::Lines => {
            let unit = Amount::new(500).unwrap();
            let line = payments::Line { name: "Tea".into(), unit, quantity: 2 };
            Price::Lines { lines: vec![line], currency: "EUR".parse().unwrap() }
        }
        Of::Plan => Price::Plan { code: plan(), expected: None, currency: None },
        Of::Shop | Of::PlanInShop => Price::Shop {
            channel: channel(),
            lines: vec![commerce::Line {
                variant: commerce::Variant::Sku("tea".into()),
                quantity: 2,
            }],
            shipping_address: None,
            shipping_method: None,
            plan: of.is_plan().then(plan),
        },
    }
}

pub fn plan() -> PlanCode {
    "PLN_gold".parse().unwrap()
}
