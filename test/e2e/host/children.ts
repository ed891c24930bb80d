import type { Edgehostd } from './edgehostd.ts'

/** The PAM children that were started. */
export interface Children {
  /** Their arguments, a line each, in the order they were started. */
  list(): Promise<string[]>
}

const record = '/var/lib/edgehostd/children'

/** Replaces the pamtester of the daemon by one that records its arguments first. */
export async function recordChildren(edgehostd: Edgehostd): Promise<Children> {
  await edgehostd.write(
    '/usr/local/bin/pamtester-recorded',
    `#!/bin/sh\nprintf '%s\\n' "$*" >> ${record}\nexec /usr/lib/edgehostd/pamtester "$@"\n`,
    0o755,
  )
  await edgehostd.configure('children', 'auth:\n  pam:\n    program: /usr/local/bin/pamtester-recorded\n')
  return {
    async list() {
      const { stdout } = await edgehostd.run(['cat', record])
      return stdout.split('\n').filter(Boolean)
    },
  }
}
