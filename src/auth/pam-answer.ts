/** The answer of PAM to a user name and password. */
export type PamVerdict =
  | { readonly kind: 'accepted' }
  /** The password is right but must be changed. */
  | { readonly kind: 'password-expired' }
  /** `reason` is for the journal only. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** The stack itself is broken; `reason` is the cause. */
  | { readonly kind: 'unusable'; readonly reason: string }

// Texts of pam_strerror(3) in the C locale. Which one a wrong password gives depends on the stack of the site.
const expired = ['Authentication token is no longer valid; new one required', 'Authentication token expired']
const broken = [
  'Module is unknown',
  'Failed to load module',
  'Symbol not found',
  'Error in service module',
  'System error',
  'Memory buffer error',
  'Critical error - immediate abort',
  'Conversation error',
]

/**
 * Parses pamtester's answer to `authenticate acct_mgmt`: the exit code is only yes or no, the details are in the last
 * line of its output.
 */
export function parseVerdict(exitCode: number | undefined, stderr: string): PamVerdict {
  if (exitCode === 0) return { kind: 'accepted' }
  const reason = resultOf(stderr)
  if (reason === undefined)
    return { kind: 'unusable', reason: `pamtester ended with ${exitCode ?? 'a signal'} without a message` }
  if (expired.includes(reason)) return { kind: 'password-expired' }
  if (broken.includes(reason)) return { kind: 'unusable', reason }
  return { kind: 'refused', reason: [...wordsOf(stderr), reason].join(' ') }
}

/** Why PAM did not change a password, in the text of its modules. */
export function parseRefusal(stderr: string): string {
  const words = wordsOf(stderr).filter((line) => line !== 'Password change has been aborted.')
  return words.join(' ') || resultOf(stderr) || 'the password was not changed'
}

const resultOf = (stderr: string) => /pamtester: (.+)\s*$/.exec(stderr.trimEnd())?.[1]

// Prompts are written without a newline, so the next text follows on the same line.
const prompt = /^((Current|New|Retype new|\(current\) UNIX|Enter new UNIX|Retype new UNIX) )?[Pp]assword: ?/

function wordsOf(stderr: string): string[] {
  return stderr
    .split('\n')
    .map((line) => {
      let rest = line
      while (prompt.test(rest)) rest = rest.replace(prompt, '')
      return rest.trim()
    })
    .filter((line) => line !== '' && !line.startsWith('pamtester:'))
}
