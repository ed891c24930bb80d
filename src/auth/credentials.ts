// Limits of pamtester: it takes options from its arguments and one line from standard input, cut at a newline or NUL,
// at most PAM_MAX_RESP_SIZE (512 bytes) including the newline.
const longestUserNameBytes = 256
const longestPasswordBytes = 511

/** Whether this text can be the name of an account; other text never reaches a child process. */
export function isPossibleUserName(name: string): boolean {
  return (
    name !== '' &&
    !name.startsWith('-') &&
    // The colon separates fields of passwd(5), so no account has one.
    !/[/:]/.test(name) &&
    // eslint-disable-next-line no-control-regex -- control characters are what is looked for
    !/[\u0000-\u001f\u007f-\u009f]/.test(name) &&
    name.isWellFormed() &&
    Buffer.byteLength(name) <= longestUserNameBytes
  )
}

/** The user name in an unvalidated body, as typed. Empty when no account can have it. */
export function typedUserName(body: unknown): string {
  const { username } = (typeof body === 'object' && body !== null ? body : {}) as { username?: unknown }
  if (typeof username !== 'string') return ''
  return isPossibleUserName(username) ? username : ''
}

/** Whether this password can be passed to PAM completely. */
export function isPossiblePassword(password: string): boolean {
  return (
    password !== '' &&
    // eslint-disable-next-line no-control-regex -- NUL, LF and CR end a line for pamtester
    !/[\u0000\n\r]/.test(password) &&
    password.isWellFormed() &&
    Buffer.byteLength(password) <= longestPasswordBytes
  )
}
