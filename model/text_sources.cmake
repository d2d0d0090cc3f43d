# Tokenizer, chat template, output parser, sampler.
target_sources(pantheon_model PRIVATE
  ${CMAKE_CURRENT_LIST_DIR}/chat/bounded_json.cpp
  ${CMAKE_CURRENT_LIST_DIR}/chat/chat_template.cpp
  ${CMAKE_CURRENT_LIST_DIR}/chat/conversation.cpp
  ${CMAKE_CURRENT_LIST_DIR}/chat/output_parser.cpp
  ${CMAKE_CURRENT_LIST_DIR}/chat/python_text.cpp
  ${CMAKE_CURRENT_LIST_DIR}/chat/text_markers.cpp
  ${CMAKE_CURRENT_LIST_DIR}/chat/tool_call_reader.cpp
  ${CMAKE_CURRENT_LIST_DIR}/chat/tool_schema.cpp
  ${CMAKE_CURRENT_LIST_DIR}/sampler/logprobs.cpp
  ${CMAKE_CURRENT_LIST_DIR}/sampler/sampler.cpp
  ${CMAKE_CURRENT_LIST_DIR}/sampler/selection.cpp
  ${CMAKE_CURRENT_LIST_DIR}/sampler/validate.cpp
  ${CMAKE_CURRENT_LIST_DIR}/tokenizer/added_tokens.cpp
  ${CMAKE_CURRENT_LIST_DIR}/tokenizer/bpe.cpp
  ${CMAKE_CURRENT_LIST_DIR}/tokenizer/byte_alphabet.cpp
  ${CMAKE_CURRENT_LIST_DIR}/tokenizer/pretokenizer.cpp
  ${CMAKE_CURRENT_LIST_DIR}/tokenizer/stream_detokenizer.cpp
  ${CMAKE_CURRENT_LIST_DIR}/tokenizer/tokenizer.cpp
  ${CMAKE_CURRENT_LIST_DIR}/tokenizer/unicode.cpp
  ${CMAKE_CURRENT_LIST_DIR}/tokenizer/utf8.cpp
  ${CMAKE_CURRENT_LIST_DIR}/tokenizer/vocabulary.cpp
)
