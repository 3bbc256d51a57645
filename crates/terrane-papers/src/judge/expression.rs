//! The expressions of claims: measurements, arithmetic, comparisons and a few functions.
//!
//! ```text
//! 100 * (1 - max(moved[@partial]) / moved[full])
//! ratio >= 2.5 and full > 10
//! order(moved[full|tier]) == 'tier < full'
//! all(p99[@testing] in 0..5)
//! ```
//!
//! A name is a measurement or a definition of the claims file. Each `[...]` after a measurement
//! selects keys of one of its dimensions: one key, several separated by `|`, a set `@name` of the
//! claims file, or all with `*`. One key in every dimension selects a number, anything else a list.
//! Arithmetic and comparisons work element by element; a bound holds if all elements do. A number
//! that was not measured is NaN, and so is everything that depends on it.

use anyhow::{Result, bail, ensure};

/// An expression, parsed.
#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    /// A literal.
    Number(f64),
    /// A literal in single quotes.
    Text(String),
    /// `[1, 2, 3]`.
    List(Vec<Self>),
    /// A measurement or a definition.
    Name(String, Vec<Selector>),
    /// `-x`.
    Negate(Box<Self>),
    /// `not x`.
    Not(Box<Self>),
    /// `x op y`.
    Binary(Operator, Box<Self>, Box<Self>),
    /// `x in low..high`, both ends included.
    In(Box<Self>, Box<Self>, Box<Self>),
    /// A function and its arguments.
    Call(Function, Vec<Self>),
}

/// Selects keys of one dimension of a measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// `*`: all keys, in the order in which they were recorded.
    All,
    /// Keys, in this order.
    Keys(Vec<String>),
    /// `@name`: the keys of a set.
    Set(String),
}

/// An operator of two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of the operators say it")]
pub enum Operator {
    Or,
    And,
    Less,
    AtMost,
    Greater,
    AtLeast,
    Equal,
    Unequal,
    Add,
    Subtract,
    Multiply,
    Divide,
}

macro_rules! functions {
    ($($(#[$doc:meta])* $variant:ident $name:literal,)*) => {
        /// A function of expressions.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Function {
            $($(#[$doc])* $variant,)*
        }

        impl Function {
            fn named(name: &str) -> Option<Self> {
                Some(match name {
                    $($name => Self::$variant,)*
                    _ => return None,
                })
            }
        }
    };
}

functions! {
    /// The least of all arguments.
    Min "min",
    /// The greatest of all arguments.
    Max "max",
    /// The mean of all arguments.
    Mean "mean",
    /// The median of all arguments; of two in the middle, the upper one.
    Median "median",
    /// The sum of all arguments.
    Sum "sum",
    /// The number of arguments.
    Count "count",
    /// The greatest argument divided by the least.
    Spread "spread",
    /// For a list: each number divided by the number before it.
    Steps "steps",
    /// For a list: each number minus the number before it.
    Differences "differences",
    /// The absolute value of each number.
    Abs "abs",
    /// The square root of each number.
    Sqrt "sqrt",
    /// True if no number is 0.
    All "all",
    /// True if at least one number is not 0.
    Any "any",
    /// The labels from the least number to the greatest, with ` < ` between them.
    Order "order",
    /// The label of the least number.
    Lowest "lowest",
    /// The label of the greatest number.
    Highest "highest",
    /// The numbers in ascending order.
    Sorted "sorted",
    /// Every round of a measurement, instead of the one value that represents all rounds.
    Rounds "rounds",
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Number(f64),
    Text(String),
    Word(String),
    Selector(Selector),
    Symbol(&'static str),
}

/// The symbols of the grammar; a longer symbol comes before its prefixes.
const SYMBOLS: [&str; 16] =
    ["<=", ">=", "==", "!=", "..", "<", ">", "+", "-", "*", "/", "(", ")", ",", "[", "]"];

fn selector(text: &str) -> Result<Selector> {
    let text = text.trim();
    ensure!(!text.is_empty(), "an empty selector");
    Ok(match text.strip_prefix('@') {
        Some(set) => Selector::Set(set.to_owned()),
        None if text == "*" => Selector::All,
        None => Selector::Keys(text.split('|').map(|key| key.trim().to_owned()).collect()),
    })
}

fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits =
        |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count() + from;
    let mut end = digits(0);
    if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
        end = digits(end + 1);
    }
    if bytes.get(end) == Some(&b'e') {
        let sign = usize::from(bytes.get(end + 1) == Some(&b'-'));
        if bytes.get(end + 1 + sign).is_some_and(u8::is_ascii_digit) {
            end = digits(end + 1 + sign);
        }
    }
    end
}

fn tokens(text: &str) -> Result<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    let mut is_selectable = false;
    while let Some(first) = rest.chars().next() {
        let was_selectable = std::mem::take(&mut is_selectable);
        let length = if first.is_whitespace() {
            first.len_utf8()
        } else if first.is_ascii_digit() {
            let length = number_length(rest);
            tokens.push(Token::Number(rest[..length].parse()?));
            length
        } else if first.is_ascii_alphabetic() {
            let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            let length = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
            tokens.push(Token::Word(rest[..length].to_owned()));
            is_selectable = true;
            length
        } else if first == '\'' {
            let Some(length) = rest[1..].find('\'') else { bail!("a text without its end") };
            tokens.push(Token::Text(rest[1..=length].to_owned()));
            length + 2
        } else if first == '[' && was_selectable {
            let Some(length) = rest.find(']') else { bail!("a selector without its end") };
            tokens.push(Token::Selector(selector(&rest[1..length])?));
            is_selectable = true;
            length + 1
        } else {
            let symbol = SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol));
            let Some(symbol) = symbol else { bail!("unexpected '{first}'") };
            tokens.push(Token::Symbol(symbol));
            symbol.len()
        };
        rest = &rest[length..];
    }
    Ok(tokens)
}

struct Parser {
    /// The remaining tokens, in reverse order.
    tokens: Vec<Token>,
}

impl Parser {
    fn takes(&mut self, wanted: &str) -> bool {
        let is_next = match self.tokens.last() {
            Some(Token::Symbol(symbol)) => *symbol == wanted,
            Some(Token::Word(word)) => word == wanted,
            _ => false,
        };
        if is_next {
            self.tokens.pop();
        }
        is_next
    }

    fn expects(&mut self, wanted: &str) -> Result<()> {
        ensure!(self.takes(wanted), "'{wanted}' expected");
        Ok(())
    }

    /// Parses operands of one level of precedence, joined from the left.
    fn joined(
        &mut self,
        operators: &[(&str, Operator)],
        operand: fn(&mut Self) -> Result<Expression>,
    ) -> Result<Expression> {
        let mut left = operand(self)?;
        while let Some((_, operator)) = operators.iter().find(|(symbol, _)| self.takes(symbol)) {
            let right = operand(self)?;
            left = Expression::Binary(*operator, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn disjunction(&mut self) -> Result<Expression> {
        self.joined(&[("or", Operator::Or)], Self::conjunction)
    }

    fn conjunction(&mut self) -> Result<Expression> {
        self.joined(&[("and", Operator::And)], Self::negation)
    }

    fn negation(&mut self) -> Result<Expression> {
        if self.takes("not") {
            return Ok(Expression::Not(Box::new(self.negation()?)));
        }
        let left = self.sum()?;
        self.compared(left)
    }

    /// Parses the rest of a comparison of `left`; returns `left` alone if there is none.
    fn compared(&mut self, left: Expression) -> Result<Expression> {
        const COMPARISONS: [(&str, Operator); 6] = [
            ("<=", Operator::AtMost),
            (">=", Operator::AtLeast),
            ("<", Operator::Less),
            (">", Operator::Greater),
            ("==", Operator::Equal),
            ("!=", Operator::Unequal),
        ];
        if self.takes("in") {
            let low = self.sum()?;
            self.expects("..")?;
            let high = self.sum()?;
            return Ok(Expression::In(Box::new(left), Box::new(low), Box::new(high)));
        }
        let found = COMPARISONS.iter().find(|(symbol, _)| self.takes(symbol));
        let Some((_, operator)) = found else { return Ok(left) };
        let right = self.sum()?;
        Ok(Expression::Binary(*operator, Box::new(left), Box::new(right)))
    }

    fn sum(&mut self) -> Result<Expression> {
        self.joined(&[("+", Operator::Add), ("-", Operator::Subtract)], Self::product)
    }

    fn product(&mut self) -> Result<Expression> {
        self.joined(&[("*", Operator::Multiply), ("/", Operator::Divide)], Self::factor)
    }

    fn factor(&mut self) -> Result<Expression> {
        if self.takes("-") {
            return Ok(Expression::Negate(Box::new(self.factor()?)));
        }
        match self.tokens.pop() {
            Some(Token::Number(number)) => Ok(Expression::Number(number)),
            Some(Token::Text(text)) => Ok(Expression::Text(text)),
            Some(Token::Word(word)) => self.word(word),
            Some(Token::Symbol("(")) => {
                let inner = self.disjunction()?;
                self.expects(")")?;
                Ok(inner)
            }
            Some(Token::Symbol("[")) => Ok(Expression::List(self.arguments("]")?)),
            Some(token) => bail!("unexpected {token:?}"),
            None => bail!("the expression ends too early"),
        }
    }

    fn word(&mut self, word: String) -> Result<Expression> {
        if self.takes("(") {
            let Some(function) = Function::named(&word) else { bail!("no function '{word}'") };
            let arguments = self.arguments(")")?;
            ensure!(!arguments.is_empty(), "{word}() needs an argument");
            return Ok(Expression::Call(function, arguments));
        }
        let mut selectors = Vec::new();
        while let Some(Token::Selector(_)) = self.tokens.last() {
            let Some(Token::Selector(selector)) = self.tokens.pop() else { break };
            selectors.push(selector);
        }
        Ok(Expression::Name(word, selectors))
    }

    fn arguments(&mut self, end: &str) -> Result<Vec<Expression>> {
        let mut arguments = Vec::new();
        while !self.takes(end) {
            if !arguments.is_empty() {
                self.expects(",")?;
            }
            arguments.push(self.disjunction()?);
        }
        Ok(arguments)
    }

    fn ends(&self) -> Result<()> {
        if let Some(token) = self.tokens.last() {
            bail!("unexpected {token:?} after the expression");
        }
        Ok(())
    }
}

impl Expression {
    /// Parses an expression.
    ///
    /// # Errors
    /// If the text is not an expression; the error names the unexpected part.
    pub fn parse(text: &str) -> Result<Self> {
        let mut tokens = tokens(text)?;
        tokens.reverse();
        let mut parser = Parser { tokens };
        let expression = parser.disjunction()?;
        parser.ends()?;
        Ok(expression)
    }

    /// Parses a bound: a condition, or the right-hand side of a comparison of the name `of`, such as
    /// `>= 2.5` and `in 0.8..1.25`.
    ///
    /// # Errors
    /// If the text is not a bound; the error names the unexpected part.
    pub fn parse_bound(text: &str, of: &str) -> Result<Self> {
        let is_right_side =
            ["<", ">", "==", "!=", "in "].iter().any(|start| text.starts_with(start));
        if is_right_side { Self::parse(&format!("{of} {text}")) } else { Self::parse(text) }
    }

    /// Calls `visit` for every name in the expression, with its selectors.
    pub fn names(&self, visit: &mut dyn FnMut(&str, &[Selector])) {
        match self {
            Self::Number(_) | Self::Text(_) => {}
            Self::Name(name, selectors) => visit(name, selectors),
            Self::List(all) | Self::Call(_, all) => all.iter().for_each(|one| one.names(visit)),
            Self::Negate(inner) | Self::Not(inner) => inner.names(visit),
            Self::Binary(_, left, right) => {
                left.names(visit);
                right.names(visit);
            }
            Self::In(inner, low, high) => {
                for one in [inner, low, high] {
                    one.names(visit);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Expression {
        Expression::parse(text).unwrap()
    }

    #[test]
    fn precedence_follows_arithmetic() {
        assert_eq!(parsed("1 + 2 * 3"), parsed("1 + (2 * 3)"));
        assert_eq!(parsed("6 / 2 / 3"), parsed("(6 / 2) / 3"));
        assert_eq!(parsed("1 - 2 - 3"), parsed("(1 - 2) - 3"));
        assert_eq!(parsed("a + 1 < b and c or d"), parsed("(((a + 1) < b) and c) or d"));
        assert_eq!(parsed("not a < b"), parsed("not (a < b)"));
        assert_eq!(parsed("-a * b"), parsed("(-a) * b"));
        assert_eq!(parsed("a in 1..2 and b"), parsed("(a in 1..2) and b"));
    }

    #[test]
    fn selectors_hold_any_key() {
        let keys = |keys: &[&str]| Selector::Keys(keys.iter().map(|&key| key.to_owned()).collect());
        let name = |selectors| Expression::Name("moved".to_owned(), selectors);
        assert_eq!(parsed("moved[lo+1]"), name(vec![keys(&["lo+1"])]));
        assert_eq!(
            parsed("moved[B-link tree | 1-lvl][*][@all]"),
            name(vec![keys(&["B-link tree", "1-lvl"]), Selector::All, Selector::Set("all".into())])
        );
    }

    #[test]
    fn bounds_may_leave_out_the_metric() {
        assert_eq!(Expression::parse_bound(">= 2.5", "x").unwrap(), parsed("x >= 2.5"));
        assert_eq!(Expression::parse_bound("in 1..2", "x").unwrap(), parsed("x in 1..2"));
        assert_eq!(Expression::parse_bound("a > b", "x").unwrap(), parsed("a > b"));
    }

    #[test]
    fn malformed_expressions_are_refused() {
        for text in ["", "1 +", "(1", "1 2", "nothing(1)", "max()", "a[", "a[]", "'x", "1 ; 2"] {
            assert!(Expression::parse(text).is_err(), "{text}");
        }
    }
}
