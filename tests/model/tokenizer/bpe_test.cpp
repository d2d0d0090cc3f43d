#include "model/tokenizer/bpe.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <utility>
#include <vector>

namespace pantheon::model {
namespace {

struct Rule {
    Symbol left, right, result;
};

MergeTable table_of(const std::vector<Rule>& rules) {
    MergeTable table(rules.size());
    for (std::size_t i = 0; i < rules.size(); ++i)
        table.add(rules[i].left, rules[i].right, {static_cast<std::uint32_t>(i), rules[i].result});
    return table;
}

/// The definition: of all adjacent pairs the lowest rank, the leftmost of those, again and again.
std::vector<Symbol> merge_by_definition(std::vector<Symbol> symbols, const MergeTable& table) {
    for (;;) {
        std::uint32_t best_rank = MergeTable::kNoRank;
        std::size_t best = 0;
        Symbol result = -1;
        for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
            const auto m = table.find(symbols[i], symbols[i + 1]);
            if (m.rank < best_rank) {
                best_rank = m.rank;
                best = i;
                result = m.result;
            }
        }
        if (best_rank == MergeTable::kNoRank) return symbols;
        symbols[best] = result;
        symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
}

TEST(BpeMerger, MatchesTheDefinitionOnShortAndLongPieces) {
    std::mt19937 random(7);
    for (int round = 0; round < 200; ++round) {
        // Few symbols and many rules, so that merges chain, overlap and compete.
        std::vector<Rule> rules;
        Symbol n_symbols = 4;
        for (int i = 0; i < 40; ++i) {
            const auto pick = [&] {
                return static_cast<Symbol>(random() % static_cast<unsigned>(n_symbols));
            };
            rules.push_back({pick(), pick(), random() % 3 == 0 ? pick() : n_symbols});
            if (rules.back().result == n_symbols) ++n_symbols;
        }
        const MergeTable table = table_of(rules);
        BpeMerger merger(table);
        for (const std::size_t n : {0U, 1U, 2U, 5U, 17U, 47U, 48U, 49U, 50U, 120U, 300U}) {
            std::vector<Symbol> symbols(n);
            for (Symbol& s : symbols) s = static_cast<Symbol>(random() % 4);
            const std::vector<Symbol> expected = merge_by_definition(symbols, table);
            symbols.resize(merger.merge(symbols));
            EXPECT_EQ(symbols, expected) << "round " << round << ", " << n << " symbols";
        }
    }
}

TEST(BpeMerger, TakesTheLeftmostOfEqualRanks) {
    const MergeTable table = table_of({{0, 0, 1}});
    BpeMerger merger(table);
    for (const std::size_t n : {3U, 63U}) {
        std::vector<Symbol> symbols(n, 0);
        symbols.resize(merger.merge(symbols));
        std::vector<Symbol> expected(n / 2, 1);
        expected.push_back(0);
        EXPECT_EQ(symbols, expected);
    }
}

TEST(BpeMerger, MergesAMegabyteRunInLittleTime) {
    std::vector<Rule> rules;
    for (Symbol s = 0; s < 10; ++s) rules.push_back({s, s, s + 1});
    const MergeTable table = table_of(rules);
    BpeMerger merger(table);
    std::vector<Symbol> symbols(1 << 20, 0);
    symbols.resize(merger.merge(symbols));  // quadratic merging would not end before the test's time limit
    EXPECT_EQ(symbols, std::vector<Symbol>(1 << 10, 10));
}

TEST(MergeTable, KeepsTheFirstRuleOfAPair) {
    const MergeTable table = table_of({{1, 2, 3}, {1, 2, 4}});
    EXPECT_EQ(table.find(1, 2).result, 3);
    EXPECT_EQ(table.find(1, 2).rank, 0U);
    EXPECT_EQ(table.find(2, 1).rank, MergeTable::kNoRank);
}

}  // namespace
}  // namespace pantheon::model
