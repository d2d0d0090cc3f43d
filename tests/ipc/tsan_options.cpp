// Debian's libzmq is not compiled with ThreadSanitizer, so its own atomics are invisible and its calls to
// memcpy and free look like races between its threads. This leaves calls made from inside such libraries out;
// every access of our own code is still checked, and no report is suppressed.
extern "C" const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() {
    return "ignore_noninstrumented_modules=1";
}
