// Continues on another stack: what a function call must preserve lies on the stack that is left.
// plait_emulation_switch(&pointer of the stack that is left, pointer of the other one).
#if defined(__x86_64__)
asm(R"(
    .text
    .hidden plait_emulation_switch
    .globl plait_emulation_switch
    .type plait_emulation_switch, @function
plait_emulation_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size plait_emulation_switch, .-plait_emulation_switch
)");
#elif defined(__aarch64__)
asm(R"(
    .text
    .hidden plait_emulation_switch
    .globl plait_emulation_switch
    .type plait_emulation_switch, %function
plait_emulation_switch:
    sub sp, sp, #160
    stp x19, x20, [sp]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
    .size plait_emulation_switch, .-plait_emulation_switch
)");
#else
#error "the emulation needs a context switch for this processor"
#endif
