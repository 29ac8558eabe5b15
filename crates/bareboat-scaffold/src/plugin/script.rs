//! The text of a plug-in.
//!
//! Names and descriptions come from a server that the author of the script may not trust: they are quoted, and no line
//! of help can end the text it is part of.

use super::flags::{WITH_VALUE, WITHOUT_VALUE};
use super::words::quoted;
use super::{Flag, OddName, Shape, Target};
use bareboat_api::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Returns the script of a plug-in.
pub fn script(target: &Target, flags: &[Flag]) -> Result<String, OddName> {
    if let Some(name) = target.odd_name() {
        return Err(OddName(name.to_owned()));
    }
    let mut out = String::new();
    head(target, flags, &mut out);
    out.push_str(FUNCTIONS);
    parse(&target.name, flags, &mut out);
    check(flags, &mut out);
    object(target, flags, &mut out);
    Ok(out)
}

fn head(target: &Target, flags: &[Flag], out: &mut String) {
    let Target { name, plural, .. } = target;
    let version = target.api_version();
    let resource = match target.group.is_empty() {
        true => plural.clone(),
        false => format!("{plural}.{}", target.group),
    };
    let _ = write!(
        out,
        "#!/bin/sh\n\
         # kubectl create {name}: creates a {kind} of {version}.\n\
         # Made by `bareboat plugin create {resource}` from its schema; run that again when the schema changes.\n\
         # It needs kubectl and a POSIX shell.\n\
         set -eu\n\n\
         usage() {{\n    cat <<'END-OF-HELP'\n\
         Create a {kind} ({version}).\n\n\
         Usage:\n  kubectl create {name} NAME [flags]\n\nFlags:\n",
        kind = target.kind,
    );
    for flag in flags {
        let left = format!("--{}{}", flag.name, value_name(flag.shape));
        let required = if flag.required { " (required)" } else { "" };
        let line = format!("  {left:<28} {}{required}", flag.help);
        let _ = writeln!(out, "{}", line.trim_end());
    }
    for (left, help) in [
        ("--label KEY=VALUE", "A label of the object (repeatable)"),
        (
            "--annotation KEY=VALUE",
            "An annotation of the object (repeatable)",
        ),
        (
            "--generate-name PREFIX",
            "Let the server choose a name that begins with PREFIX, instead of NAME",
        ),
    ] {
        let _ = writeln!(out, "  {left:<28} {help}");
    }
    if target.namespaced {
        let left = "-n, --namespace NAMESPACE";
        let _ = writeln!(out, "  {left:<28} The namespace of the object");
    }
    let _ = write!(
        out,
        "\nFlags of kubectl create, such as --dry-run=server and -o yaml, and flags for all commands, such as --context, \
         work too.\nLists are given by repeating a flag.\nEND-OF-HELP\n}}\n\n"
    );
}

fn value_name(shape: Shape) -> &'static str {
    match shape {
        Shape::Boolean => "",
        Shape::Integer => " INTEGER",
        Shape::Number | Shape::Numbers => " NUMBER",
        Shape::Map => " KEY=VALUE",
        Shape::Json => " JSON",
        Shape::Text | Shape::IntegerOrText | Shape::Texts => " TEXT",
    }
}

const FUNCTIONS: &str = r#"fail() {
    printf 'error: %s\n' "$1" >&2
    printf "See '%s --help' for usage.\n" "$command" >&2
    exit 1
}

# Prints a text as a JSON string.
quote() {
    printf '%s\n' "$1" | LC_ALL=C awk '
        BEGIN {
            for (i = 1; i < 32; i++) escaped[sprintf("%c", i)] = sprintf("\\u%04x", i)
            escaped["\""] = "\\\""; escaped["\\"] = "\\\\"; escaped["\t"] = "\\t"
            printf "\""
        }
        NR > 1 { printf "\\n" }
        { for (i = 1; i <= length($0); i++) { c = substr($0, i, 1); printf "%s", (c in escaped) ? escaped[c] : c } }
        END { printf "\"" }'
}

# Sets value and used from a flag: --flag VALUE or --flag=VALUE.
take() {
    case $1 in
    *=*) value=${1#*=} used=1 ;;
    *)
        [ "$left" -ge 2 ] || fail "flag needs an argument: $1"
        value=$2 used=2
        ;;
    esac
}

number() {
    printf '%s\n' "$value" | grep -Eqx -e "$2" || fail "invalid argument \"$value\" for \"${1%%=*}\": not $3"
}

boolean() {
    case $1 in
    *=true | *=false) value=${1#*=} ;;
    *=*) fail "invalid argument \"${1#*=}\" for \"${1%%=*}\": not true or false" ;;
    *) value=true ;;
    esac
    used=1
}

pair() {
    case $value in
    ?*=*) value="$(quote "${value%%=*}"):$(quote "${value#*=}")" ;;
    *) fail "invalid argument \"$value\" for \"${1%%=*}\": not KEY=VALUE" ;;
    esac
}

"#;

const INTEGER: &str = "'-?(0|[1-9][0-9]*)' 'an integer'";
const NUMBER: &str = "'-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][+-]?[0-9]+)?' 'a number'";

/// Reads the command line. What is for kubectl is moved to the end of the arguments.
fn parse(name: &str, flags: &[Flag], out: &mut String) {
    let _ = writeln!(out, "command='kubectl create {name}'");
    out.push_str("kubectl=${KUBECTL_PATH:-kubectl}\n");
    out.push_str("name='' prefix='' labels='' annotations='' words=''\n");
    for index in 0..flags.len() {
        let _ = writeln!(out, "v{index}=''");
    }
    out.push_str("left=$#\nwhile [ \"$left\" -gt 0 ]; do\n    used=1\n    case $words$1 in\n");
    for (index, flag) in flags.iter().enumerate() {
        let read = match flag.shape {
            Shape::Text => format!("take \"$@\"; v{index}=$(quote \"$value\")"),
            Shape::Integer => format!("take \"$@\"; number \"$1\" {INTEGER}; v{index}=$value"),
            Shape::Number => format!("take \"$@\"; number \"$1\" {NUMBER}; v{index}=$value"),
            Shape::Boolean => format!("boolean \"$1\"; v{index}=$value"),
            Shape::IntegerOrText => format!(
                "take \"$@\"; case $value in 0 | [1-9]*) case $value in *[!0-9]*) v{index}=$(quote \"$value\") ;; \
                 *) v{index}=$value ;; esac ;; *) v{index}=$(quote \"$value\") ;; esac"
            ),
            Shape::Texts => format!("take \"$@\"; v{index}=$v{index},$(quote \"$value\")"),
            Shape::Numbers => {
                format!("take \"$@\"; number \"$1\" {NUMBER}; v{index}=$v{index},$value")
            }
            Shape::Map => format!("take \"$@\"; pair \"$1\"; v{index}=$v{index},$value"),
            Shape::Json => format!("take \"$@\"; v{index}=$value"),
        };
        let _ = writeln!(
            out,
            "    --{name} | --{name}=*) {read} ;;",
            name = flag.name
        );
    }
    let with: Vec<String> = WITH_VALUE.iter().map(|name| format!("--{name}")).collect();
    let without: Vec<String> = WITHOUT_VALUE
        .iter()
        .map(|name| format!("--{name} | --{name}=*"))
        .collect();
    let joined: Vec<String> = WITH_VALUE
        .iter()
        .map(|name| format!("--{name}=*"))
        .collect();
    let _ = write!(
        out,
        r#"    --label | --label=*) take "$@"; pair "$1"; labels=$labels,$value ;;
    --annotation | --annotation=*) take "$@"; pair "$1"; annotations=$annotations,$value ;;
    --generate-name | --generate-name=*) take "$@"; prefix=$value ;;
    -h | --help) usage; exit 0 ;;
    --) words=word: ;;
    -n | -o | -s | -v | {with})
        take "$@"
        [ "$1" != --namespace ] && [ "$1" != -n ] || [ -n "$value" ] || fail "the namespace is empty"
        set -- "$@" "$1" "$value"
        ;;
    -[nosv]?* | {joined} | {without}) set -- "$@" "$1" ;;
    -*) fail "unknown flag: ${{1%%=*}}" ;;
    *)
        [ -z "$name" ] || fail "exactly one NAME is required, got \"$name\" and \"$1\""
        name=$1
        ;;
    esac
    shift "$used"
    left=$((left - used))
done

"#,
        with = with.join(" | "),
        joined = joined.join(" | "),
        without = without.join(" | "),
    );
}

fn check(flags: &[Flag], out: &mut String) {
    out.push_str("[ -n \"$name$prefix\" ] || fail 'NAME is required'\n");
    for (index, flag) in flags.iter().enumerate() {
        if flag.required {
            let text = quoted(&format!("required flag \"{}\" not set", flag.name));
            let _ = writeln!(out, "[ -n \"$v{index}\" ] || fail {text}");
        }
    }
}

/// A field of the object: set by a flag, or an object with fields.
enum Node {
    Flag(usize, Shape),
    Object(BTreeMap<String, Node>),
}

/// Builds the object inside out: what has no flags set is left out.
fn object(target: &Target, flags: &[Flag], out: &mut String) {
    let mut root = BTreeMap::new();
    for (index, flag) in flags.iter().enumerate() {
        let Some((last, parents)) = flag.path.split_last() else {
            continue;
        };
        let mut here = &mut root;
        for field in parents {
            let node = here
                .entry(field.clone())
                .or_insert_with(|| Node::Object(BTreeMap::new()));
            match node {
                Node::Object(fields) => here = fields,
                Node::Flag(..) => return,
            }
        }
        here.insert(last.clone(), Node::Flag(index, flag.shape));
    }
    out.push_str(
        "\nmetadata=''\n\
         [ -z \"$name\" ] || metadata=\"$metadata,\\\"name\\\":$(quote \"$name\")\"\n\
         [ -z \"$prefix\" ] || metadata=\"$metadata,\\\"generateName\\\":$(quote \"$prefix\")\"\n\
         [ -z \"$labels\" ] || metadata=\"$metadata,\\\"labels\\\":{${labels#,}}\"\n\
         [ -z \"$annotations\" ] || metadata=\"$metadata,\\\"annotations\\\":{${annotations#,}}\"\n",
    );
    let mut objects = 0;
    let top = fields(&root, &mut objects, out);
    let api_version = Value::string(target.api_version()).to_string();
    let kind = Value::string(&target.kind).to_string();
    let start = quoted(&format!("{{\"apiVersion\":{api_version},\"kind\":{kind}"));
    let _ = writeln!(
        out,
        "printf '%s,\"metadata\":{{%s}}%s}}\\n' {start} \"${{metadata#,}}\" \"${top}\" | \"$kubectl\" create -f - \"$@\""
    );
}

/// Writes the code that sets a variable to the fields of an object, each after a comma; returns the variable.
fn fields(map: &BTreeMap<String, Node>, objects: &mut usize, out: &mut String) -> String {
    let variable = format!("o{objects}");
    *objects += 1;
    let mut lines = format!("{variable}=''\n");
    for (field, node) in map {
        let key = quoted(&format!(",{}:", Value::string(field)));
        let (from, shown) = match node {
            Node::Flag(index, shape) => {
                let from = format!("v{index}");
                let shown = match shape {
                    Shape::Texts | Shape::Numbers => format!("'['\"${{{from}#,}}\"']'"),
                    Shape::Map => format!("'{{'\"${{{from}#,}}\"'}}'"),
                    _ => format!("\"${from}\""),
                };
                (from, shown)
            }
            Node::Object(inner) => {
                let from = fields(inner, objects, out);
                let shown = format!("'{{'\"${{{from}#,}}\"'}}'");
                (from, shown)
            }
        };
        let _ = writeln!(
            lines,
            "[ -z \"${from}\" ] || {variable}=\"${variable}\"{key}{shown}"
        );
    }
    out.push_str(&lines);
    variable
}
