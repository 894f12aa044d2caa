//! The conditions of Kconfig: options and comparisons, with `!`, `&&`, `||` and parentheses.

use facts::Config;

/// A condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Expression {
    /// An option that must be `y` or `m`, or a constant.
    Name(String),
    /// A comparison: the left side, the operator, and the right side.
    Compare(String, String, String),
    /// What must not hold.
    Not(Box<Expression>),
    /// Both.
    And(Box<Expression>, Box<Expression>),
    /// One of them.
    Or(Box<Expression>, Box<Expression>),
}

impl Expression {
    /// Parses a condition; `None` if it is none.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let tokens = tokens(text);
        let mut parser = Parser { tokens: &tokens };
        let expression = parser.or()?;
        parser.tokens.is_empty().then_some(expression)
    }

    /// What a configuration lacks for this to hold; `None` if it holds.
    pub(crate) fn unmet(&self, config: &Config) -> Option<String> {
        match self {
            Self::Name(name) => match is_constant(name) {
                true => (name == "n").then(|| "what no configuration has".to_owned()),
                false => (!config.is_set(name)).then(|| format!("{name}=y")),
            },
            Self::Compare(left, operator, right) => {
                (!compare(value(left, config), operator, value(right, config)))
                    .then(|| format!("{left}{operator}{right}"))
            }
            Self::Not(inner) => {
                inner.unmet(config).is_none().then(|| match inner.option() {
                    Some(name) => format!("{name}=n"),
                    None => format!("!({})", inner.text()),
                })
            }
            Self::And(left, right) => {
                let both = [left.unmet(config), right.unmet(config)];
                let unmet: Vec<String> = both.into_iter().flatten().collect();
                (!unmet.is_empty()).then(|| unmet.join(" and "))
            }
            Self::Or(left, right) => {
                Some(format!("{}, or {}", left.unmet(config)?, right.unmet(config)?))
            }
        }
    }

    /// Adds the names in it, of options or constants.
    pub(crate) fn add_names<'a>(&'a self, names: &mut Vec<&'a str>) {
        match self {
            Self::Name(name) => names.push(name),
            Self::Compare(left, _, right) => names.extend([left.as_str(), right]),
            Self::Not(inner) => inner.add_names(names),
            Self::And(left, right) | Self::Or(left, right) => {
                left.add_names(names);
                right.add_names(names);
            }
        }
    }

    /// The option that it consists of, if it does.
    fn option(&self) -> Option<&str> {
        let Self::Name(name) = self else { return None };
        (!is_constant(name)).then_some(name)
    }

    fn text(&self) -> String {
        match self {
            Self::Name(name) => name.clone(),
            Self::Compare(left, operator, right) => format!("{left}{operator}{right}"),
            Self::Not(inner) => format!("!{}", inner.text()),
            Self::And(left, right) => format!("{} && {}", left.text(), right.text()),
            Self::Or(left, right) => format!("({} || {})", left.text(), right.text()),
        }
    }
}

/// A constant, or a macro, whose value is unknown and counts as `y`.
fn is_constant(name: &str) -> bool {
    matches!(name, "y" | "m" | "n") || name.starts_with("$(")
}

/// The value of one side of a comparison.
fn value<'a>(side: &'a str, config: &'a Config) -> Option<&'a str> {
    if side.starts_with("$(") {
        return None;
    }
    if let Some(text) = side.strip_prefix(['"', '\'']) {
        return Some(text.trim_end_matches(['"', '\'']));
    }
    let is_literal = is_constant(side) || side.starts_with(|c: char| c.is_ascii_digit());
    if is_literal { Some(side) } else { Some(config.value(side).unwrap_or("n")) }
}

/// Whether a comparison holds; one with an unknown side does.
fn compare(left: Option<&str>, operator: &str, right: Option<&str>) -> bool {
    let (Some(left), Some(right)) = (left, right) else { return true };
    let numbers = left.parse::<i64>().ok().zip(right.parse::<i64>().ok());
    let order = match numbers {
        Some((left, right)) => left.cmp(&right),
        None => left.cmp(right),
    };
    match operator {
        "=" => order.is_eq(),
        "!=" => order.is_ne(),
        "<" => order.is_lt(),
        "<=" => order.is_le(),
        ">" => order.is_gt(),
        _ => order.is_ge(),
    }
}

/// The words and operators of a condition; a macro is one word.
fn tokens(text: &str) -> Vec<String> {
    const OPERATORS: [&str; 11] =
        ["&&", "||", "!=", "<=", ">=", "=", "<", ">", "!", "(", ")"];
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let operator = OPERATORS.iter().find(|operator| rest.starts_with(**operator));
        let length = match (operator, first) {
            (Some(operator), _) => operator.len(),
            (None, '"' | '\'') => rest[1..].find(first).map_or(rest.len(), |end| end + 2),
            (None, '$') => macro_length(rest),
            (None, _) => {
                let ends = |c: char| c.is_whitespace() || "&|!<>=()".contains(c);
                rest.find(ends).unwrap_or(rest.len()).max(first.len_utf8())
            }
        };
        tokens.push(rest[..length].to_owned());
        rest = rest[length..].trim_start();
    }
    tokens
}

/// The length of a macro: to its closing parenthesis.
fn macro_length(text: &str) -> usize {
    let mut depth = 0_u32;
    for (index, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth <= 1 => return index + 1,
            ')' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

struct Parser<'a> {
    tokens: &'a [String],
}

impl Parser<'_> {
    fn accept(&mut self, token: &str) -> bool {
        let is_next = self.tokens.first().is_some_and(|first| first == token);
        if is_next {
            self.tokens = &self.tokens[1..];
        }
        is_next
    }

    fn next(&mut self) -> Option<String> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first.clone())
    }

    fn or(&mut self) -> Option<Expression> {
        let mut left = self.and()?;
        while self.accept("||") {
            left = Expression::Or(Box::new(left), Box::new(self.and()?));
        }
        Some(left)
    }

    fn and(&mut self) -> Option<Expression> {
        let mut left = self.single()?;
        while self.accept("&&") {
            left = Expression::And(Box::new(left), Box::new(self.single()?));
        }
        Some(left)
    }

    fn single(&mut self) -> Option<Expression> {
        if self.accept("!") {
            return Some(Expression::Not(Box::new(self.single()?)));
        }
        if self.accept("(") {
            let inner = self.or()?;
            return self.accept(")").then_some(inner);
        }
        let left = self.next()?;
        let operators = ["=", "!=", "<", "<=", ">", ">="];
        match operators.into_iter().find(|operator| self.accept(operator)) {
            Some(operator) => {
                Some(Expression::Compare(left, operator.to_owned(), self.next()?))
            }
            None => Some(Expression::Name(left)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unmet(text: &str) -> Option<String> {
        let config = "CONFIG_A=y\nCONFIG_M=m\nCONFIG_N=200\nCONFIG_S=\"x\"\n";
        let config = Config::parse(config.as_bytes(), "c").unwrap();
        Expression::parse(text).unwrap().unmet(&config)
    }

    /// Check which conditions hold, and what is lacking for others.
    #[test]
    fn conditions() {
        for met in [
            "A",
            "M && !B",
            "B || A",
            "(B || A) && !(B && A)",
            "N > 100",
            "N>=200",
            "B = n",
            "A!=n",
            "$(cc-option,-mfoo) && A",
            "\"$(X)\" = \"y\" || A",
            "S = \"x\"",
            "!B&&A",
        ] {
            assert_eq!(unmet(met), None, "{met}");
        }
        assert_eq!(unmet("A && B && !M").unwrap(), "B=y and M=n");
        assert_eq!(unmet("B || C").unwrap(), "B=y, or C=y");
        assert_eq!(unmet("N < 100").unwrap(), "N<100");
        assert_eq!(unmet("!(A && M)").unwrap(), "!(A && M)");
        assert_eq!(Expression::parse("A &&"), None);
        assert_eq!(Expression::parse("(A"), None);
    }
}
