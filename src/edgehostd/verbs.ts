import { changePassword, setSshKeys } from '../auth/verbs.ts'
import { makeSupportArchive, ping, traceroute } from '../diagnosis/verbs.ts'
import type { AnyVerb } from '../verbs/verb.ts'

/** All that the daemon may have done on the host as root, beside the steps of its cluster (`cluster/step-program`). */
export const verbs: readonly AnyVerb[] = [changePassword, setSshKeys, ping, traceroute, makeSupportArchive]
