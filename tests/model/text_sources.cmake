# Tokenizer, chat template, output parser, sampler.
pantheon_test(tokenizer_test
  SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/tokenizer/added_tokens_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/tokenizer/bpe_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/tokenizer/pretokenizer_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/tokenizer/small_vocabulary.cpp
    ${CMAKE_CURRENT_LIST_DIR}/tokenizer/stream_detokenizer_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/tokenizer/tokenizer_load_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/tokenizer/tokenizer_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/tokenizer/unicode_test.cpp
  LIBS pantheon_model
  LABELS fast)
pantheon_test(sampler_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/sampler/sampler_test.cpp
  LIBS pantheon_model
  LABELS fast)
pantheon_test(chat_test
  SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/chat/chat_template_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/chat/output_parser_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/tokenizer/small_vocabulary.cpp
  LIBS pantheon_model
  LABELS fast)
