//! The macro behind the declaration of options.

/// An entry of the reference of options.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OptionInfo {
    /// The name of the option and of its builder method. With hyphens instead of underscores it is
    /// also the name of the command-line flag.
    pub name: &'static str,
    /// The meaning.
    pub about: &'static str,
    /// The default value.
    pub default: String,
    /// The accepted values.
    pub accepted: &'static str,
    /// The benefit and cost of a larger value or the other choice.
    pub trade_off: &'static str,
    /// When a change takes effect.
    pub takes_effect: &'static str,
}

/// Declares options. Each is defined once: its entry generates the builder method with its
/// documentation, the parser, the default, validation, and the entry of `Options::table`.
macro_rules! options {
    ($(
        $(#[doc = $about:literal])*
        $name:ident: $given:ty as $stored:ty = $default:expr,
        accepts $accepted:literal where $check:expr,
        trade_off $trade_off:literal,
        takes_effect $takes_effect:literal;
    )*) => {
        /// Options for opening a database.
        ///
        /// ```
        /// # fn main() -> terrane::Result<()> {
        /// # let dir = tempfile::tempdir().unwrap();
        /// use terrane::{Durability, Options};
        /// let db = Options::new().durability(Durability::Sync).open(dir.path())?;
        /// db.put("key", "value")?;
        /// # Ok(())
        /// # }
        /// ```
        #[derive(Debug, Clone)]
        pub struct Options {
            $($name: Option<$stored>,)*
            /// The names and texts of options that apply if the database is created.
            if_new: Vec<(&'static str, String)>,
            pub(crate) open_mode: OpenMode,
            pub(crate) components: Components,
        }

        /// The value of every option, with defaults and stored values filled in.
        #[derive(Debug, Clone)]
        pub(crate) struct Settings {
            $(pub(crate) $name: $stored,)*
        }

        impl Default for Options {
            fn default() -> Self {
                Self {
                    $($name: None,)*
                    if_new: Vec::new(),
                    open_mode: OpenMode::CreateIfMissing,
                    components: Components::default(),
                }
            }
        }

        impl Options {
            $(
                $(#[doc = $about])*
                ///
                #[doc = concat!("Accepts ", $accepted, ".")]
                ///
                #[doc = concat!($trade_off, " Takes effect ", $takes_effect, ".")]
                #[must_use]
                pub fn $name(mut self, value: $given) -> Self {
                    self.$name = Some(<$stored>::from(value));
                    self
                }
            )*

            /// Sets an option by name, from text.
            ///
            /// # Errors
            /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) if the option is unknown, or the
            /// text is not one of its values.
            pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
                // The flags of the command have dashes.
                let name = name.replace('-', "_");
                match name.as_str() {
                    $(stringify!($name) => {
                        self.$name = Some(parse(stringify!($name), value, $accepted)?);
                    })*
                    _ => {
                        let known = [$(stringify!($name)),*];
                        let expected = match terrane_policy::suggest::nearest(&name, known) {
                            Some(near) => format!("the name of one, such as '{near}'"),
                            None => format!("one of {}", known.join(", ")),
                        };
                        return Err(Error::invalid("option", format!("'{name}'"), expected));
                    }
                }
                Ok(())
            }

            /// The options that were set, as names and text.
            pub(crate) fn given(&self) -> Vec<(&'static str, String)> {
                let mut given = Vec::new();
                $(given.extend(self.$name.as_ref().map(|value| (stringify!($name), value.to_string())));)*
                given
            }

            /// The values of all options, validated.
            pub(crate) fn settings(&self) -> Result<Settings> {
                let settings = Settings {
                    $($name: self.$name.clone().unwrap_or_else(|| $default),)*
                };
                $({
                    let value = &settings.$name;
                    let check: fn(&$stored) -> bool = $check;
                    if !check(value) {
                        return Err(Error::invalid(stringify!($name), value.to_string(), $accepted));
                    }
                })*
                Ok(settings)
            }

            /// Returns all options with their documentation.
            pub fn table() -> Vec<OptionInfo> {
                vec![$(OptionInfo {
                    name: stringify!($name),
                    about: concat!($($about, "\n"),*).trim_ascii(),
                    default: <$stored>::to_string(&$default),
                    accepted: $accepted,
                    trade_off: $trade_off,
                    takes_effect: $takes_effect,
                }),*]
            }
        }
    };
}

pub(super) use options;
