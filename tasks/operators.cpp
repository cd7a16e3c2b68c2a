#include "tasks/operators.hpp"

#include <string>
#include <unordered_set>

namespace hone {
namespace {

// ATen of LibTorch 2.11 without: files, strings, devices and generators of random numbers; whatever
// changes storages, names or autograd state; gradients; quantized, sparse and nested tensors;
// vendor-specific entry points. Also without operators that trust their caller with sizes, strides,
// indices or pivots, most of which are the private halves of others: they read and write at any
// address they are given, in the process that judges them.
constexpr std::string_view aten_operators = R"(
Bool Float FloatImplicit Int IntImplicit ScalarImplicit __and__ __contains__ __derive_index
__getitem__ __iand__ __ilshift__ __interpolate __ior__ __irshift__ __is__ __isnot__ __ixor__
__lshift__ __not__ __or__ __range_length __round_to_zero_floordiv __rshift__ __upsample
__upsample_bilinear __upsample_nearest __xor__ _adaptive_avg_pool2d _adaptive_avg_pool3d
_addmm_activation _aminmax _cast_Byte _cast_Char _cast_Double _cast_Float _cast_Half _cast_Int
_cast_Long _cast_Short _conj _conj_physical _convolution _convolution_mode _euclidean_dist
_infer_size _int_mm _is_all_true _is_any_true _linalg_det _linalg_eigh _linalg_eigvals
_linalg_slogdet _linalg_solve_ex _linalg_svd _list_to_tensor _local_scalar_dense _log_softmax
_logcumsumexp _neg_view _pad_circular _pad_enum _reshape_copy _safe_softmax _scaled_mm _set_item
_shape_as_tensor _softmax _stack _tensor_to_list _to_copy _trilinear _unique _unique2 _unsafe_view
_unwrap_optional _upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d abs
abs_ absolute absolute_ acos acos_ acosh acosh_ adaptive_avg_pool1d adaptive_avg_pool2d
adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d add add_ addbmm
addbmm_ addcdiv addcdiv_ addcmul addcmul_ addmm addmm_ addmv addmv_ addr addr_ adjoint
affine_grid_generator alias alias_copy all allclose alpha_dropout amax amin aminmax angle any append
arange arccos arccos_ arccosh arccosh_ arcsin arcsin_ arcsinh arcsinh_ arctan arctan2 arctan2_
arctan_ arctanh arctanh_ argmax argmin argsort argwhere as_strided as_strided_ as_strided_copy
as_strided_scatter asin asin_ asinh asinh_ atan atan2 atan2_ atan_ atanh atanh_ atleast_1d
atleast_2d atleast_3d avg_pool1d avg_pool2d avg_pool3d baddbmm baddbmm_ bartlett_window batch_norm
bilinear binary_cross_entropy binary_cross_entropy_with_logits bincount bitwise_and bitwise_and_
bitwise_left_shift bitwise_left_shift_ bitwise_not bitwise_not_ bitwise_or bitwise_or_
bitwise_right_shift bitwise_right_shift_ bitwise_xor bitwise_xor_ blackman_window block_diag bmm
broadcast_tensors broadcast_to bucketize cartesian_prod cat ccol_indices_copy cdist ceil ceil_ celu
celu_ chain_matmul chalf channel_shuffle cholesky cholesky_inverse cholesky_solve chunk clamp clamp_
clamp_max clamp_max_ clamp_min clamp_min_ clip clip_ clone col2im col_indices_copy column_stack
combinations complex concat concatenate conj conj_physical constant_pad_nd contiguous conv1d conv2d
conv3d conv_depthwise3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution copy
copy_ copysign copysign_ corrcoef cos cos_ cosh cosh_ cosine_embedding_loss cosine_similarity count
count_nonzero cov cross cross_entropy_loss crow_indices_copy cuda cummax cummin cumprod cumprod_
cumsum cumsum_ cumulative_trapezoid deg2rad deg2rad_ degrees det detach detach_copy device diag
diag_embed diagflat diagonal diagonal_copy diagonal_scatter diff digamma digamma_ dim dist div div_
divide divide_ divmod dot dropout dsplit dstack einsum element_size elu elu_ embedding embedding_bag
empty empty_like empty_permuted empty_strided eq eq_ equal erf erf_ erfc erfc_ erfinv erfinv_ exp
exp2 exp2_ exp_ expand expand_as expand_copy expm1 expm1_ extend eye fabs factorial fft_fft fft_fft2
fft_fftfreq fft_fftn fft_fftshift fft_hfft fft_hfft2 fft_hfftn fft_ifft fft_ifft2 fft_ifftn
fft_ifftshift fft_ihfft fft_ihfft2 fft_ihfftn fft_irfft fft_irfft2 fft_irfftn fft_rfft fft_rfft2
fft_rfftfreq fft_rfftn fill fill_ fill_diagonal_ fix fix_ flatten flip fliplr flipud float_power
float_power_ floor floor_ floor_divide floor_divide_ floordiv fmax fmin fmod fmod_ format frac frac_
frexp frobenius_norm full full_like gamma gather gcd gcd_ ge ge_ gelu gelu_ geqrf ger glu gradient
greater greater_ greater_equal greater_equal_ grid_sampler grid_sampler_2d grid_sampler_3d
group_norm gru gru_cell gt gt_ hamming_window hann_window hardshrink hardsigmoid hardsigmoid_
hardswish hardswish_ hardtanh hardtanh_ heaviside heaviside_ hinge_embedding_loss histc histogram
hsplit hstack huber_loss hypot hypot_ i0 i0_ igamma igamma_ igammac igammac_ im2col imag index
index_add index_add_ index_copy index_copy_ index_fill index_fill_ index_put index_put_ index_reduce
index_reduce_ index_select indices_copy inner insert instance_norm inverse is_complex is_conj
is_contiguous is_floating_point is_inference is_neg is_non_overlapping_and_dense is_nonzero
is_same_size is_signed is_strides_like_format isclose isfinite isin isinf isnan isneginf isposinf
isreal istft item kaiser_window kl_div kron kthvalue l1_loss layer_norm lcm lcm_ ldexp ldexp_ le le_
leaky_relu leaky_relu_ len lerp lerp_ less less_ less_equal less_equal_ lgamma lgamma_ lift
lift_fresh lift_fresh_copy linalg__powsum linalg_cholesky linalg_cholesky_ex linalg_cond
linalg_cross linalg_det linalg_diagonal linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh
linalg_householder_product linalg_inv linalg_inv_ex linalg_lstsq linalg_lu linalg_lu_factor
linalg_lu_factor_ex linalg_lu_solve linalg_matmul linalg_matrix_exp linalg_matrix_norm
linalg_matrix_power linalg_matrix_rank linalg_multi_dot linalg_norm linalg_pinv linalg_qr
linalg_slogdet linalg_solve linalg_solve_ex linalg_solve_triangular linalg_svd linalg_svdvals
linalg_tensorinv linalg_tensorsolve linalg_vander linalg_vecdot linalg_vector_norm linear linspace
log log10 log10_ log1p log1p_ log2 log2_ log_ log_sigmoid log_sigmoid_forward log_softmax logaddexp
logaddexp2 logcumsumexp logdet logical_and logical_and_ logical_not logical_not_ logical_or
logical_or_ logical_xor logical_xor_ logit logit_ logspace logsumexp lstm lstm_cell lt lt_ lu_solve
lu_unpack mH mT margin_ranking_loss masked_fill masked_fill_ masked_scatter masked_scatter_
masked_select mathremainder matmul matrix_H matrix_exp matrix_power max max_pool1d
max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d max_pool3d_with_indices
max_unpool2d max_unpool3d maximum mean median meshgrid min minimum mish mish_ mm mode modf moveaxis
movedim mse_loss msort mul mul_ multi_margin_loss multilabel_margin_loss
multilabel_margin_loss_forward multiply multiply_ mv mvlgamma mvlgamma_ nan_to_num nan_to_num_
nanmean nanmedian nanquantile nansum narrow narrow_copy native_channel_shuffle native_dropout
native_layer_norm ne ne_ neg neg_ negative negative_ new_empty new_empty_strided new_full new_ones
new_zeros nextafter nextafter_ nll_loss nll_loss2d nll_loss2d_forward nll_loss_forward nll_loss_nd
nonzero nonzero_numpy nonzero_static norm norm_except_dim not_equal not_equal_ nuclear_norm numel
numpy_T one_hot ones ones_like orgqr ormqr outer pad pad_sequence pairwise_distance pdist permute
permute_copy pinverse pixel_shuffle pixel_unshuffle poisson_nll_loss polar polygamma polygamma_ pop
positive pow pow_ prelu prod put put_ qr quantile rad2deg rad2deg_ radians range ravel real
reciprocal reciprocal_ reflection_pad1d reflection_pad2d reflection_pad3d relu relu6 relu6_ relu_
remainder remainder_ remove renorm renorm_ repeat repeat_interleave replication_pad1d
replication_pad2d replication_pad3d reshape reshape_as resolve_conj resolve_neg reverse rms_norm
rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell roll rot90 round round_ row_indices_copy row_stack
rrelu rsqrt rsqrt_ rsub scalar_tensor scaled_dot_product_attention scatter scatter_ scatter_add
scatter_add_ scatter_reduce scatter_reduce_ searchsorted select select_copy select_scatter selu
selu_ sgn sgn_ sigmoid sigmoid_ sign sign_ signbit silu silu_ sin sin_ sinc sinc_ sinh sinh_ size
slice slice_copy slice_scatter slogdet slow_conv3d slow_conv3d_forward slow_conv_dilated2d
slow_conv_dilated3d slow_conv_transpose2d slow_conv_transpose3d smooth_l1_loss soft_margin_loss
softmax softplus softshrink sort sorted special_airy_ai special_bessel_j0 special_bessel_j1
special_bessel_y0 special_bessel_y1 special_chebyshev_polynomial_t special_chebyshev_polynomial_u
special_chebyshev_polynomial_v special_chebyshev_polynomial_w special_digamma special_entr
special_erf special_erfc special_erfcx special_erfinv special_exp2 special_expit special_expm1
special_gammainc special_gammaincc special_gammaln special_hermite_polynomial_h
special_hermite_polynomial_he special_i0 special_i0e special_i1 special_i1e
special_laguerre_polynomial_l special_legendre_polynomial_p special_log1p special_log_ndtr
special_log_softmax special_logit special_logsumexp special_modified_bessel_i0
special_modified_bessel_i1 special_modified_bessel_k0 special_modified_bessel_k1
special_multigammaln special_ndtr special_ndtri special_polygamma special_psi special_round
special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1
special_shifted_chebyshev_polynomial_t special_shifted_chebyshev_polynomial_u
special_shifted_chebyshev_polynomial_v special_shifted_chebyshev_polynomial_w special_sinc
special_softmax special_spherical_bessel_j0 special_xlog1py special_xlogy special_zeta split
split_copy split_with_sizes split_with_sizes_copy sqrt sqrt_ square square_ squeeze squeeze_
squeeze_copy stack std std_mean stft stride sub sub_ subtract subtract_ sum sum_to_size svd swapaxes
swapaxes_ swapdims swapdims_ t t_ t_copy take take_along_dim tan tan_ tanh tanh_ tensor tensor_split
tensordot thnn_conv2d threshold threshold_ tile to topk trace transpose transpose_ transpose_copy
trapezoid trapz triangular_solve tril tril_ tril_indices triplet_margin_loss triu triu_ triu_indices
true_divide true_divide_ trunc trunc_ type_as unbind unbind_copy unflatten unfold unfold_copy
unique_consecutive unique_dim unique_dim_consecutive unsafe_chunk unsafe_split
unsafe_split_with_sizes unsqueeze unsqueeze_ unsqueeze_copy upsample_bicubic2d upsample_bilinear2d
upsample_linear1d upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_trilinear3d
values_copy vander var var_mean vdot view view_as view_as_complex view_as_complex_copy view_as_real
view_as_real_copy view_copy vsplit vstack where xlogy xlogy_ zero zero_ zeros zeros_like
)";

constexpr std::string_view other_operators = R"(
prim::Constant prim::ListConstruct prim::ListUnpack prim::TupleConstruct prim::TupleUnpack
prim::TupleIndex prim::TupleSlice prim::If prim::Loop prim::RaiseException prim::NumToTensor
prim::device prim::dtype prim::layout prim::is_cuda prim::is_cpu prim::type prim::itemsize
prim::nbytes prim::requires_grad prim::min prim::max prim::abs prim::rangelist prim::unchecked_cast
prim::unchecked_unwrap_optional prim::Uninitialized prim::ConstantChunk prim::data hone::launch
hone::stream hone::join
)";

constexpr std::string_view content_readers = R"(
aten::item aten::_local_scalar_dense aten::Int aten::Float aten::Bool aten::IntImplicit
aten::FloatImplicit aten::ScalarImplicit aten::equal aten::allclose aten::is_nonzero aten::nonzero
aten::nonzero_numpy aten::argwhere aten::masked_select aten::unique_consecutive aten::unique_dim
aten::unique_dim_consecutive aten::_unique aten::_unique2 aten::bincount aten::repeat_interleave
aten::one_hot aten::_is_all_true aten::_is_any_true aten::combinations aten::histc
aten::_tensor_to_list
)";

using name_set = std::unordered_set<std::string>;

void add_words(name_set& names, std::string_view words, std::string_view prefix) {
  std::size_t at = 0;
  while ((at = words.find_first_not_of(" \n", at)) != std::string_view::npos) {
    const std::size_t end = std::min(words.find_first_of(" \n", at), words.size());
    names.insert(std::string(prefix) + std::string(words.substr(at, end - at)));
    at = end;
  }
}

}  // namespace

bool is_allowed_operator(std::string_view name) {
  static const name_set names = [] {
    name_set all;
    add_words(all, aten_operators, "aten::");
    add_words(all, other_operators, "");
    return all;
  }();
  return names.contains(std::string(name));
}

bool reads_contents(std::string_view name) {
  static const name_set names = [] {
    name_set all;
    add_words(all, content_readers, "");
    return all;
  }();
  return names.contains(std::string(name));
}

}  // namespace hone
