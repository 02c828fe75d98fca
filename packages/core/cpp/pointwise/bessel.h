// Bessel functions and Airy's function Ai. The coefficients of the modified Bessel functions are
// Chebyshev interpolants of the functions named beside them, computed with 40 digits; the division
// of the line follows Clenshaw (1962), "Chebyshev series for mathematical functions".
#pragma once
#include "pointwise/chebyshev_series.h"

namespace plait::scalar::math {

// exp(-x) I0(x) on [0, 8] in x / 4 - 1, and sqrt(x) exp(-x) I0(x) from there on in 16 / x - 1
PLAIT_TABLE double kI0Near[29] = {
    0.33839763720473803,    -0.3046826723431984,     0.17162090152220877,    -0.09490109704804764,
    0.04930528423967071,    -0.02373741480589947,    0.010546460394594998,   -0.004324309995050576,
    0.0016394756169413357,  -0.0005763755745385824,  0.00018850288509584165, -5.754195010082104e-05,
    1.6448448070728896e-05, -4.4167383584587505e-06, 1.1173875391201037e-06, -2.670793853940612e-07,
    6.046995022541919e-08,  -1.300025009986248e-08,  2.6598237246823866e-09, -5.189795601635263e-10,
    9.675809035373237e-11,  -1.726826291441556e-11,  2.95505266312964e-12,   -4.856446783111929e-13,
    7.676185498604936e-14,  -1.1685332877993451e-14, 1.715391285555133e-15,  -2.431279846547955e-16,
    3.3307945188222384e-17};
PLAIT_TABLE double kI0Far[25] = {
    0.4022452055070544,      0.0033691164782556943,   6.889758346916825e-05,
    2.8913705208347567e-06,  2.0489185894690638e-07,  2.266668990498178e-08,
    3.3962320257083865e-09,  4.94060238822497e-10,    1.1889147107846439e-11,
    -3.1499165279632416e-11, -1.3215811840447713e-11, -1.7941785315068062e-12,
    7.180124451383666e-13,   3.8527783827421426e-13,  1.54008621752141e-14,
    -4.150569347287222e-14,  -9.554846698828307e-15,  3.8116806693526224e-15,
    1.7725601330565263e-15,  -3.425485619677219e-16,  -2.8276239805165836e-16,
    3.461222867697461e-17,   4.46562142029676e-17,    -4.830504485944182e-18,
    -7.233180487874754e-18};
// exp(-x) I1(x) / x, and sqrt(x) exp(-x) I1(x)
PLAIT_TABLE double kI1Near[29] = {
    0.12629359322181682,     -0.17641651835783406,    0.1026436586898471,
    -0.05294598120809499,    0.024726449030626516,    -0.010564084894626197,
    0.004156422944312888,    -0.0015135724506312532,  0.0005122859561685758,
    -0.00016176081582589674, 4.781565107550054e-05,   -1.3273163656039436e-05,
    3.4702513081376785e-06,  -8.568720264695455e-07,  2.0032947535521353e-07,
    -4.445059128796328e-08,  9.381537386495773e-09,   -1.8872497517228294e-09,
    3.625590281552117e-10,   -6.663489723502027e-11,  1.1736186298890901e-11,
    -1.9839743977649436e-12, 3.223793365945575e-13,   -5.042185504727912e-14,
    7.600684294735408e-15,   -1.1055969477353862e-15, 1.5536319577362005e-16,
    -2.111421214358166e-17,  2.7779141127610464e-18};
PLAIT_TABLE double kI1Far[25] = {
    0.38928811750914005,     -0.009761097491361469,   -0.00011058893876262371,
    -3.882564808877691e-06,  -2.512236237870209e-07,  -2.6314688468895196e-08,
    -3.835380385964237e-09,  -5.589743462196584e-10,  -1.8974958123505413e-11,
    3.2526035830154884e-11,  1.4125807436613782e-11,  2.0356285441470896e-12,
    -7.198551776245908e-13,  -4.0835511110921974e-13, -2.1015418427726643e-14,
    4.272440016711951e-14,   1.0420276984128802e-14,  -3.8144030724370075e-15,
    -1.8803547755107825e-15, 3.3082023109209285e-16,  2.96262899764595e-16,
    -3.209525921993424e-17,  -4.6503053684893586e-17, 4.414348323071708e-18,
    7.517296310842105e-18};
// sqrt(x) exp(x) K(x) from 2 on in 4 / x - 1
PLAIT_TABLE double kK0Far[23] = {
    1.2201515410329777,      -0.0314481013119645,    0.0015698838857300533,
    -0.00012849549581627802, 1.39498137188765e-05,   -1.8317555227191195e-06,
    2.766813639445015e-07,   -4.660489897687948e-08, 8.574034017414225e-09,
    -1.6975345093890614e-09, 3.5773972814003283e-10, -7.957489244477396e-11,
    1.8559491149549264e-11,  -4.514597883374519e-12, 1.1403405882073441e-12,
    -2.9800969231481784e-13, 8.032890775068375e-14,  -2.2275133267462965e-14,
    6.340076476276646e-15,   -1.848593377920907e-15, 5.5120559994043335e-16,
    -1.6782311257549006e-16, 5.2103917776435543e-17};
PLAIT_TABLE double kK1Far[23] = {
    1.3603130952422213,      0.10392373657681724,     -0.002857816859622779,
    0.00019521551847135162,  -1.936197974166083e-05,  2.406484947837217e-06,
    -3.5019606030878126e-07, 5.7410841254500495e-08,  -1.0345762465678097e-08,
    2.0150497551970347e-09,  -4.1903547593419254e-10, 9.218315187605315e-11,
    -2.129967838427791e-11,  5.139639673482343e-12,   -1.2891739609498229e-12,
    3.348419666052243e-13,   -8.976705182010146e-14,  2.4771544242195988e-14,
    -7.0198370892147685e-15, 2.038703166239861e-15,   -6.057047270643018e-16,
    1.8380935752430455e-16,  -5.689462849193648e-17};

PLAIT_HD_CALL double i0e(double x) {
  const double a = abs(x);
  if (a <= 8) return chebyshev(kI0Near, a / 4 - 1);
  return chebyshev(kI0Far, 16 / a - 1) / sqrt(a);
}
PLAIT_HD_CALL double i1e(double x) {
  const double a = abs(x);
  const double r =
      a <= 8 ? chebyshev(kI1Near, a / 4 - 1) * a : chebyshev(kI1Far, 16 / a - 1) / sqrt(a);
  return x < 0 ? -r : r;
}
// exp(|x|) times a scaled function: in two steps the product is finite where exp alone is not, and
// infinity times 0, what the scaled function is there, is infinity
PLAIT_HD_CALL double unscaled(double x, double scaled) {
  const double a = abs(x);
  if (a < 700) return ::exp(a) * scaled;
  if (a == kInf64) return ::copysign(a, scaled);
  const double half = ::exp(a / 2);
  return scaled * half * half;
}
PLAIT_HD_CALL double i0(double x) { return unscaled(x, i0e(x)); }
PLAIT_HD_CALL double i1(double x) { return unscaled(x, i1e(x)); }

// K0 for x <= 2: -(log(x / 2) + Euler's constant) I0(x) + sum of h_k (x^2 / 4)^k / k!^2, where h_k
// is the k-th harmonic number (DLMF 10.31.2)
PLAIT_HD_CALL double k0_near(double x) {
  const double t = x * x / 4;
  double term = 1, harmonic = 0, sum = 0, i = 1;
  for (int k = 1; k < 16; k++) {
    term *= t / (double(k) * k);
    harmonic += 1.0 / k;
    i += term;
    sum += term * harmonic;
  }
  return sum - (::log(x / 2) + kEuler) * i;
}
// K1 for x <= 2: 1 / x + log(x / 2) I1(x) - x / 4 sum of (psi(k + 1) + psi(k + 2)) (x^2 / 4)^k /
// (k! (k + 1)!) (DLMF 10.31.1)
PLAIT_HD_CALL double k1_near(double x) {
  const double t = x * x / 4;
  double term = 1, psi = 1 - 2 * kEuler, sum = psi, i = 1;
  for (int k = 1; k < 16; k++) {
    term *= t / (double(k) * (k + 1));
    psi += 1.0 / k + 1.0 / (k + 1);
    i += term;
    sum += term * psi;
  }
  return 1 / x + ::log(x / 2) * (x / 2) * i - x / 4 * sum;
}
PLAIT_HD_CALL double k0e(double x) {
  if (x <= 0) return x == 0 ? kInf64 : kNan64;
  return x <= 2 ? k0_near(x) * ::exp(x) : chebyshev(kK0Far, 4 / x - 1) / sqrt(x);
}
PLAIT_HD_CALL double k1e(double x) {
  if (x <= 0) return x == 0 ? kInf64 : kNan64;
  return x <= 2 ? k1_near(x) * ::exp(x) : chebyshev(kK1Far, 4 / x - 1) / sqrt(x);
}
PLAIT_HD_CALL double k0(double x) {
  if (x <= 0) return x == 0 ? kInf64 : kNan64;
  return x <= 2 ? k0_near(x) : chebyshev(kK0Far, 4 / x - 1) / sqrt(x) * ::exp(-x);
}
PLAIT_HD_CALL double k1(double x) {
  if (x <= 0) return x == 0 ? kInf64 : kNan64;
  return x <= 2 ? k1_near(x) : chebyshev(kK1Far, 4 / x - 1) / sqrt(x) * ::exp(-x);
}

// Functions that the C library has.

PLAIT_HD_CALL double bessel_j0(double x) { return ::j0(x); }
PLAIT_HD_CALL double bessel_j1(double x) { return ::j1(x); }
PLAIT_HD_CALL double bessel_y0(double x) { return x > 0 ? ::y0(x) : x == 0 ? -kInf64 : kNan64; }
PLAIT_HD_CALL double bessel_y1(double x) { return x > 0 ? ::y1(x) : x == 0 ? -kInf64 : kNan64; }

// sin(x) / x
PLAIT_HD_CALL double spherical_j0(double x) {
  if (abs(x) == kInf64) return 0;
  const double t = x * x;
  if (t < 0x1p-20) return 1 - t / 6 * (1 - t / 20);
  return ::sin(x) / x;
}

// Airy's function Ai. Near 0 its Maclaurin series (DLMF 9.4.1); elsewhere the forms that its
// asymptotic expansions suggest (DLMF 9.7.5 and 9.7.9), with Chebyshev interpolants, computed with
// 40 digits, in place of the divergent series.

// with z = 2/3 |x|^(3/2): 2 sqrt(pi) x^(1/4) exp(z) Ai(x) for x >= 1, in 4/3 / z - 1
PLAIT_TABLE double kAiryRight[37] = {
    0.9637683609849689,      -0.03241600019448593,    0.0031941239613695834,
    -0.0004942254050330157,  9.706517942546595e-05,   -2.224444511200298e-05,
    5.694838987920343e-06,   -1.5868397039029868e-06, 4.7311609911660025e-07,
    -1.4914679268537125e-07, 4.928201239454347e-08,   -1.6955948660827914e-08,
    6.043322459186302e-09,   -2.2220862485979766e-09, 8.400808330101413e-10,
    -3.256498049790017e-10,  1.2913338128187496e-10,  -5.227872191419496e-11,
    2.1571120180559685e-11,  -9.058221909804504e-12,  3.8661427181794894e-12,
    -1.6752774093903056e-12, 7.362663634133786e-13,   -3.278955307898836e-13,
    1.4785693873897687e-13,  -6.7459272277099e-14,    3.112098467985573e-14,
    -1.4508441986007412e-14, 6.831416567315612e-15,   -3.247207556858449e-15,
    1.557481834155047e-15,   -7.53476283451668e-16,   3.675223402283836e-16,
    -1.8068071063373415e-16, 8.94975618550186e-17,    -4.46528818390057e-17,
    2.2433819359991275e-17};
// for x <= -2, in 2 (z0 / z)^2 - 1 with z0 of -2: what sin(z + pi/4) and, times z, -cos(z + pi/4)
// are multiplied with
PLAIT_TABLE double kAiryCosine[42] = {
    0.9957410714721162,      -0.004010035109646775,   0.00021749797850221077,
    -2.559707367991953e-05,  4.446236506870234e-06,   -9.821561055116752e-07,
    2.560803263173486e-07,   -7.548234203090785e-08,  2.44721348245912e-08,
    -8.565475755185289e-09,  3.1936752594998614e-09,  -1.2559870213945038e-09,
    5.170550836252247e-10,   -2.2149050974012306e-10, 9.825674760236792e-11,
    -4.4963784985107854e-11, 2.1156885271618144e-11,  -1.020822064668857e-11,
    5.039149368967831e-12,   -2.53989412974783e-12,   1.3049189702516344e-12,
    -6.823616992772736e-13,  3.6269500493237954e-13,  -1.9573262197294738e-13,
    1.0713573340081666e-13,  -5.942337987524576e-14,  3.337147377471767e-14,
    -1.89612430498717e-14,   1.0892823911612116e-14,  -6.323127439638672e-15,
    3.7068074961198106e-15,  -2.19343226131331e-15,   1.309489975291323e-15,
    -7.884020161871072e-16,  4.785079327906646e-16,   -2.926628603823476e-16,
    1.8031669044974737e-16,  -1.1188125444493245e-16, 6.988830336632028e-17,
    -4.393986157719229e-17,  2.77977030435001e-17,    -1.769095532031475e-17};
PLAIT_TABLE double kAirySine[54] = {
    0.06570090884059218,     -0.0033671650461869046,  0.00031318668306176705,
    -4.909474711434696e-05,  1.0313853228014992e-05,  -2.6227031443554174e-06,
    7.642834030899704e-07,   -2.4692182109787845e-07, 8.65432347140437e-08,
    -3.2412592511092894e-08, 1.2830030202968923e-08,  -5.323264824289517e-09,
    2.3002631954788238e-09,  -1.0299480657983928e-09, 4.758870680398365e-10,
    -2.261382410117948e-10,  1.102049059875216e-10,   -5.4947920141440016e-11,
    2.7973298258565818e-11,  -1.4515080315590872e-11, 7.665136033865763e-12,
    -4.114042808158452e-12,  2.241604146597023e-12,   -1.238627510878169e-12,
    6.934477756663979e-13,   -3.930243581682812e-13,  2.2533844185313679e-13,
    -1.306080104560784e-13,  7.648191422779263e-14,   -4.522322228170815e-14,
    2.6987231239529177e-14,  -1.624605368900002e-14,  9.861549071496754e-15,
    -6.0336428893080375e-15, 3.719578745840473e-15,   -2.3096264012369255e-15,
    1.4440696465225718e-15,  -9.088810027605934e-16,  5.7567982010834625e-16,
    -3.668600786022358e-16,  2.3515965414229315e-16,  -1.5159049279792015e-16,
    9.825116029015765e-17,   -6.401402843381183e-17,  4.191838201058756e-17,
    -2.758356803206574e-17,  1.8236515367352827e-17,  -1.2111879481371867e-17,
    8.079711921814673e-18,   -5.412957003624865e-18,  3.641417281220376e-18,
    -2.4595132767669588e-18, 1.6677045018833774e-18,  -1.1350920716032491e-18};

PLAIT_HD_CALL double airy_ai(double x) {
  if (x != x) return x;
  if (x > 108) return 0;
  if (x < -1e100) return x == -kInf64 ? 0 : kNan64;
  const double a = abs(x), root = sqrt(a), z = 2.0 / 3 * a * root;
  if (x >= 1) {
    const double f = chebyshev(kAiryRight, 4.0 / 3 / z - 1);
    return f * ::exp(-z) / (2 * kSqrtPi * sqrt(root));
  }
  if (x <= -2) {
    const double s = 32.0 / 9 / (z * z), t = 2 * s - 1;
    const double angle = z + kPi / 4;
    const double wave =
        ::sin(angle) * chebyshev(kAiryCosine, t) - ::cos(angle) * chebyshev(kAirySine, t) / z;
    return wave / (kSqrtPi * sqrt(root));
  }
  const double cube = x * x * x;  // Ai(0) f(x) + Ai'(0) g(x)
  double f = 1, g = x, sum_f = 1, sum_g = x;
  for (int k = 1; k < 16; k++) {
    f *= cube / (3 * k * (3 * k - 1.0));
    g *= cube / (3 * k * (3 * k + 1.0));
    sum_f += f;
    sum_g += g;
  }
  return 0.355028053887817239 * sum_f - 0.258819403792806798 * sum_g;
}

}  // namespace plait::scalar::math

namespace plait::scalar {

// the Bessel function J0
PLAIT_UNARY_IN_DOUBLE(special_bessel_j0, math::bessel_j0)

// the Bessel function J1
PLAIT_UNARY_IN_DOUBLE(special_bessel_j1, math::bessel_j1)

// the Bessel function Y0
PLAIT_UNARY_IN_DOUBLE(special_bessel_y0, math::bessel_y0)

// the Bessel function Y1
PLAIT_UNARY_IN_DOUBLE(special_bessel_y1, math::bessel_y1)

// the modified Bessel function I0
PLAIT_UNARY_IN_DOUBLE(i0, math::i0)

// exp(-|x|) I0(x)
PLAIT_UNARY_IN_DOUBLE(special_i0e, math::i0e)

// the modified Bessel function I1
PLAIT_UNARY_IN_DOUBLE(special_i1, math::i1)

// exp(-|x|) I1(x)
PLAIT_UNARY_IN_DOUBLE(special_i1e, math::i1e)

// the modified Bessel function K0
PLAIT_UNARY_IN_DOUBLE(special_modified_bessel_k0, math::k0)

// the modified Bessel function K1
PLAIT_UNARY_IN_DOUBLE(special_modified_bessel_k1, math::k1)

// exp(x) K0(x)
PLAIT_UNARY_IN_DOUBLE(special_scaled_modified_bessel_k0, math::k0e)

// exp(x) K1(x)
PLAIT_UNARY_IN_DOUBLE(special_scaled_modified_bessel_k1, math::k1e)

// sin(x) / x
PLAIT_UNARY_IN_DOUBLE(special_spherical_bessel_j0, math::spherical_j0)

// Airy's function Ai
PLAIT_UNARY_IN_DOUBLE(special_airy_ai, math::airy_ai)

}  // namespace plait::scalar
