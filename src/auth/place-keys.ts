import { asAccount, findKeysPlace, placeKeys } from '../host/ssh-keys.ts'
import { createRunner } from '../system/runner.ts'
import { VerbRefused } from '../verbs/verb.ts'

interface OwnKeys {
  readonly userName: string
  /** Without any, those that the account has set are taken away. */
  readonly keys: readonly string[]
}

/**
 * The work of the verb `set-ssh-keys`, in a process of its own: for a moment all of it has the rights of the account.
 * @returns the path of the file
 * @throws VerbRefused
 */
export async function placeAccountKeys({ userName, keys }: OwnKeys): Promise<string> {
  const found = await findKeysPlace(createRunner(), userName, () => false)
  if ('problem' in found) throw new VerbRefused(found.problem)
  await asAccount(found.account, () => placeKeys(found, 'account', keys))
  return found.path
}
