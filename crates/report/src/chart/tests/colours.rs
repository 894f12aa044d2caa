//! Checks of the colours in the style sheet: contrast to the ground, and distance from each other for
//! people who see fewer colours (G. M. Machado, M. M. Oliveira, L. A. F. Fernandes: A Physiologically-based
//! Model for Simulation of Color Vision Deficiency, 2009; distances in OKLab).

use crate::chart::CHART_STYLE;

type Rgb = [f64; 3];
type Matrix = [[f64; 3]; 3];

const PROTAN: Matrix = [
    [0.152_286, 1.052_583, -0.204_868],
    [0.114_503, 0.786_281, 0.099_216],
    [-0.003_882, -0.048_116, 1.051_998],
];
const DEUTAN: Matrix = [
    [0.367_322, 0.860_646, -0.227_968],
    [0.280_085, 0.672_501, 0.047_413],
    [-0.011_820, 0.042_940, 0.968_881],
];
const ALL: Matrix = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
const TO_CONES: Matrix = [
    [0.412_221_470_8, 0.536_332_536_3, 0.051_445_992_9],
    [0.211_903_498_2, 0.680_699_545_1, 0.107_396_956_6],
    [0.088_302_461_9, 0.281_718_837_6, 0.629_978_700_5],
];
const TO_LAB: Matrix = [
    [0.210_454_255_3, 0.793_617_785_0, -0.004_072_046_8],
    [1.977_998_495_1, -2.428_592_205_0, 0.450_593_709_9],
    [0.025_904_037_1, 0.782_771_766_2, -0.808_675_766_0],
];

fn times(matrix: &Matrix, [a, b, c]: Rgb) -> Rgb {
    matrix.map(|row| row[0] * a + row[1] * b + row[2] * c)
}

/// The linear colour of a variable, in the light theme or in the dark one, which has those of the light
/// one unless it says otherwise.
fn colour(name: &str, is_dark: bool) -> Rgb {
    let (light, dark) = CHART_STYLE.split_once("@media").unwrap();
    let find =
        |css: &str| Some(css.split_once(&format!("--{name}: #"))?.1[..6].to_owned());
    let dark = is_dark.then(|| find(dark)).flatten();
    let hex = dark.or_else(|| find(light)).unwrap();
    [0, 2, 4].map(|at| {
        let part = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
        if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
    })
}

fn distance(a: Rgb, b: Rgb, seen: &Matrix) -> f64 {
    let lab = |colour: Rgb| {
        let seen = times(seen, colour).map(|part| part.clamp(0.0, 1.0));
        times(&TO_LAB, times(&TO_CONES, seen).map(f64::cbrt))
    };
    let squares = lab(a).into_iter().zip(lab(b)).map(|(a, b)| (a - b).powi(2));
    100.0 * squares.sum::<f64>().sqrt()
}

fn contrast(a: Rgb, b: Rgb) -> f64 {
    let [a, b] = [a, b].map(|[r, g, b]| 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05);
    a.max(b) / a.min(b)
}

/// Check that each colour of a series has a contrast of 3 to the paper, and is as different from all others
/// as those of Okabe and Ito at least, which is 7.6.
#[test]
fn series() {
    for is_dark in [false, true] {
        let named = |name: &str| colour(name, is_dark);
        let paper = named("paper");
        let mut all: Vec<Rgb> = (0..7).map(|at| named(&format!("s{at}"))).collect();
        all.push(named("base"));
        for (at, one) in all.iter().enumerate() {
            assert!(contrast(*one, paper) >= 3.0, "{at}: {}", contrast(*one, paper));
            for (other, two) in all.iter().enumerate().skip(at + 1) {
                for seen in [&ALL, &PROTAN, &DEUTAN] {
                    let distance = distance(*one, *two, seen);
                    assert!(distance >= 7.6, "{at} {other} dark {is_dark}: {distance}");
                }
            }
        }
        for text in ["ink", "soft"] {
            assert!(contrast(named(text), paper) >= 4.5, "{text}");
        }
    }
}

/// Check that neighbouring shades are very different, and that all are, a little; and that more heat is
/// darker on light paper, and lighter on dark paper.
#[test]
fn shades_and_heat() {
    let shade = |at: usize| colour(&format!("k{}", at % 9), false);
    for at in 0..9 {
        for seen in [&ALL, &PROTAN, &DEUTAN] {
            assert!(distance(shade(at), shade(at + 1), seen) >= 14.0, "{at}");
            let others = (at + 1..9).map(|other| distance(shade(at), shade(other), seen));
            assert!(others.fold(99.0, f64::min) >= 3.5, "{at}");
        }
    }
    for is_dark in [false, true] {
        let paper = colour("paper", is_dark);
        let steps = (0..9).map(|at| contrast(colour(&format!("h{at}"), is_dark), paper));
        let steps: Vec<f64> = steps.collect();
        assert!(steps.windows(2).all(|pair| pair[0] < pair[1]), "{steps:?}");
    }
}
