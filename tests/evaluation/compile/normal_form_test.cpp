#include "evaluation/compile/normal_form.hpp"

#include <gtest/gtest.h>

namespace hone {
namespace {

std::string ptx_kernel(const std::string& name, const std::string& label, const std::string& factor,
                       const std::string& variable) {
  return ".visible .entry " + name + "(\n\t.param .u64 " + name +
         "_param_0\n)\n{\n\t.reg .b32 \t%r<2>;\n" + "\t// a comment about " + name +
         "\n\tld.param.u64 \t%rd1, [" + name + "_param_0];\n" + label + ":\n\tmov.u32 \t%r1, " +
         factor + ";\n\tmov.u64 \t%rd2, " + variable + ";\n\t@%p1 bra \t" + label +
         ";\n\tret;\n}\n";
}

std::string ptx_variable(const std::string& name, const std::string& values) {
  return ".const .align 4 .b8 " + name + "[2] = {" + values + "};\n";
}

const std::string head = "//\n// Generated\n//\n.version 9.0\n.target sm_90a\n\n";

TEST(NormalForm, OfPtxHasNoNamesCommentsOrderOrUnreachableCode) {
  const std::string form = normal_form(
      head + ptx_variable("table", "1, 2") + ptx_kernel("scale", "$L__BB0_1", "7", "table"),
      {"scale"}, {"scale"});
  const auto other = [](const std::string& text, const std::string& root) {
    return normal_form(head + text, {root}, {root});
  };
  EXPECT_EQ(other(ptx_kernel("unused", "$L__BB0_1", "3", "t") +
                      ptx_kernel("_Z2upPf", "$L__BB1_1", "7", "t") + ptx_variable("t", "1, 2") +
                      ptx_variable("unused_table", "3"),
                  "_Z2upPf"),
            form);
  EXPECT_NE(other(ptx_variable("table", "1, 2") + ptx_kernel("scale", "$L__BB0_1", "8", "table"),
                  "scale"),
            form);
  EXPECT_NE(other(ptx_variable("table", "1, 3") + ptx_kernel("scale", "$L__BB0_1", "7", "table"),
                  "scale"),
            form);
  EXPECT_EQ(form.find("scale"), std::string::npos);
  EXPECT_EQ(form.find("table"), std::string::npos);
}

TEST(NormalForm, OfGnuAssemblyFollowsTheTableOfKernels) {
  const auto assembly = [](const std::string& name, const std::string& label,
                           const std::string& add, bool table_first) {
    const std::string table = "\t.section\t.rodata.str1.1\n" + std::string(".LC") + label +
                              ":\n\t.string\t\"" + name +
                              "\"\n\t.section\t.data.rel.ro\nhone_module:\n\t.quad\t.LC" + label +
                              "\n\t.quad\t" + name + "\n\t.comm\tshared_" + name + ",4,4\n";
    const std::string function = "\t.globl\t" + name + "\n" + name + ":\n\tmovl\tshared_" + name +
                                 "(%rip), %eax\n\taddq\t$shared_" + name + ", %rbx\n.L" + label +
                                 ":\n\taddl\t$" + add + ", %eax\n\tjne\t.L" + label +
                                 "\n\tret\n\t.size\t" + name + ", .-" + name + "\n";
    return table_first ? table + function : function + table;
  };
  const auto form = [&](const std::string& name, const std::string& text) {
    return normal_form(text, {"hone_module"}, {name});
  };
  const std::string known = form("up", assembly("up", "3", "1", true));
  EXPECT_EQ(form("down", assembly("down", "5", "1", false) + "unused:\n\tret\n"), known);
  EXPECT_NE(form("up", assembly("up", "3", "2", true)), known);
}

TEST(NormalForm, KernelsAreNumberedInTheOrderOfTheHostProgram) {
  const std::string two = head + ptx_kernel("a", "$L__BB0_1", "1", "t") +
                          ptx_kernel("b", "$L__BB1_1", "2", "t") + ptx_variable("t", "1");
  EXPECT_NE(normal_form(two, {"a", "b"}, {"a", "b"}), normal_form(two, {"b", "a"}, {"b", "a"}));
}

TEST(NormalForm, AcceptsAnyBytes) {
  for (const char* text :
       {"", ":", "\n:\n", ".", "\t.comm\t", ".entry", ".entry(", "a:\na:\na a_param_ _param_"})
    EXPECT_NO_THROW((void)normal_form(text, {"a", ""}, {""})) << text;
}

}  // namespace
}  // namespace hone
