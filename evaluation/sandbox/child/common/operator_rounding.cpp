#include "evaluation/sandbox/child/common/operator_rounding.hpp"

#include <string>
#include <unordered_map>

namespace hone {
namespace {

struct rule_line {
  operator_rounding rule;
  std::string_view names;
};

using kind = rounding_kind;

// Functions that are about 1 in between are exact to a rounding of 1, however small their results
// are: sigmoid by tanh, tanh and elu by exp, softplus and log1p by log. The coefficient 2 means
// two roundings; tanh and trigonometric functions have the error of the fast intrinsics.
constexpr rule_line lines[] = {
    {{kind::exact},
     "_aminmax _reshape_alias _unsafe_view abs absolute adaptive_max_pool1d adaptive_max_pool2d "
     "adaptive_max_pool3d alias alias_copy amax amin aminmax any all arange as_strided "
     "as_strided_copy as_strided_scatter block_diag broadcast_tensors cat channel_shuffle clamp "
     "clamp_max clamp_min clip clone concat conj constant_pad_nd contiguous copy copysign cummax "
     "cummin detach diag diag_embed diagonal diagonal_copy diagonal_scatter dropout embedding "
     "empty "
     "empty_like empty_permuted empty_strided expand expand_copy eye fill fill_diagonal flip fmax "
     "fmin full full_like gather hardtanh im2col index index_copy index_fill index_put "
     "index_select "
     "leaky_relu lift lift_fresh lift_fresh_copy masked_fill masked_scatter masked_select "
     "max_pool1d max_pool2d max_pool3d max_unpool2d max_unpool3d maximum minimum nan_to_num "
     "native_channel_shuffle neg new_empty new_empty_strided new_full new_ones new_zeros one_hot "
     "ones ones_like permute permute_copy pixel_shuffle pixel_unshuffle positive prelu put real "
     "reflection_pad1d reflection_pad2d reflection_pad3d relu relu6 repeat repeat_interleave "
     "replication_pad1d replication_pad2d replication_pad3d roll rot90 rrelu scalar_tensor scatter "
     "select select_copy select_scatter slice slice_copy slice_scatter split stack t take "
     "transpose tril triu unbind unfold unfold_copy unsqueeze upsample_nearest1d "
     "upsample_nearest2d upsample_nearest3d view where zero zeros zeros_like "
     "_upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d"},
    {{kind::unit, 16, 0, 0}, "tanh"},
    {{kind::unit, 2, 0, 0},
     "sigmoid erf erfc hardsigmoid atan atan2 asin acos asinh atanh special_expit special_erf "
     "special_ndtr special_erfc sinc special_sinc"},
    {{kind::unit, 0, 2, 0}, "silu gelu hardswish"},
    {{kind::unit, 0, 16, 0}, "mish"},
    {{kind::unit, 2, 0, 2},
     "softplus log_sigmoid_forward log1p expm1 elu celu selu log log2 log10 logaddexp logaddexp2 "
     "logit xlogy special_log1p special_expm1 special_xlogy special_xlog1py lgamma digamma "
     "softshrink acosh special_entr special_log_ndtr binary_cross_entropy "
     "binary_cross_entropy_with_logits logcumsumexp _logcumsumexp logsumexp"},
    {{kind::unit, 4, 2, 0}, "sin cos"},
    {{kind::unit, 4, 2, 4}, "tan"},
    {{kind::multiplicative}, "mul multiply square"},
    {{kind::logarithmic}, "exp exp2 pow float_power sinh cosh special_exp2 erfinv"},
    {{kind::additive}, "add sub rsub lerp"},
    {{kind::product},
     "mm bmm dot vdot mv addmm addmv baddbmm addbmm addr _addmm_activation addcmul addcdiv "
     "_trilinear linalg_vecdot _int_mm"},
    {{kind::convolution},
     "convolution _convolution conv_tbc thnn_conv2d slow_conv3d conv_depthwise3d "
     "slow_conv_transpose2d slow_conv_transpose3d slow_conv_dilated2d slow_conv_dilated3d"},
    {{kind::sum},
     "sum mean nansum trace avg_pool1d avg_pool2d avg_pool3d _adaptive_avg_pool2d "
     "_adaptive_avg_pool3d adaptive_avg_pool1d upsample_linear1d upsample_bilinear2d "
     "upsample_trilinear3d upsample_bicubic2d _embedding_bag_forward_only _embedding_bag "
     "index_add scatter_add col2im"},
    {{kind::cumulative}, "cumsum cumulative_trapezoid"},
    {{kind::running_power}, "cumprod prod"},
    {{kind::norm}, "norm linalg_vector_norm frobenius_norm renorm dist linalg__powsum"},
    {{kind::distance}, "_cdist_forward _euclidean_dist _pdist_forward"},
    {{kind::softmax}, "_softmax _safe_softmax"},
    {{kind::log_softmax}, "_log_softmax"},
    {{kind::backward_stable},
     "linalg_cholesky_ex linalg_eigh linalg_eig linalg_eigvals linalg_eigvalsh _linalg_eigh "
     "_linalg_eigvals linalg_inv_ex linalg_lu_factor_ex linalg_lu linalg_lu_solve _linalg_det "
     "_linalg_slogdet _linalg_solve_ex linalg_solve_triangular _linalg_svd linalg_lstsq "
     "linalg_matrix_exp linalg_qr linalg_householder_product cholesky cholesky_inverse "
     "cholesky_solve geqrf ormqr triangular_solve lu_unpack _fft_r2c _fft_c2r _fft_c2c "
     "grid_sampler_2d grid_sampler_3d"},
    {{kind::layer_norm}, "native_layer_norm"},
    {{kind::group_norm}, "native_group_norm"},
    {{kind::batch_norm}, "batch_norm"},
    {{kind::variance}, "var std var_mean std_mean"},
    {{kind::attention}, "scaled_dot_product_attention"},
    {{kind::recurrent}, "lstm gru rnn_tanh rnn_relu"},
    {{kind::conversion}, "_to_copy"},
    {{kind::decision},
     "argmax argmin argsort bucketize ceil eq floor floor_divide ge greater greater_equal gt "
     "heaviside histc isclose isin le less less_equal logical_not lt ne not_equal round "
     "searchsorted sgn sign signbit trunc fix"},
    {{kind::selection},
     "sort topk max min median nanmedian mode kthvalue max_pool2d_with_indices "
     "max_pool3d_with_indices max_pool1d_with_indices"},
    {{kind::quotient}, "remainder fmod frac"},
    {{kind::cutoff}, "hardshrink threshold"},
};

using rule_table = std::unordered_map<std::string_view, const operator_rounding*>;

rule_table make_table() {
  rule_table table;
  for (const rule_line& line : lines) {
    for (std::size_t at = 0; at < line.names.size();) {
      const std::size_t end = std::min(line.names.find(' ', at), line.names.size());
      table.emplace(line.names.substr(at, end - at), &line.rule);
      at = end + 1;
    }
  }
  return table;
}

}  // namespace

const operator_rounding& rounding_of(std::string_view name) {
  static const rule_table table = make_table();
  static constexpr operator_rounding once{};
  if (const auto found = table.find(name); found != table.end()) return *found->second;
  if (name.ends_with('_')) return rounding_of(name.substr(0, name.size() - 1));
  return once;
}

}  // namespace hone
