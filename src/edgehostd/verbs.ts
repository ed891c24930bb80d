import { changePassword } from '../auth/verbs.ts'
import { decideNetworkChange, finishNetworkChanges, tryNetworkChange } from '../network/trial/verbs.ts'
import type { AnyVerb } from '../verbs/verb.ts'

/** All that the daemon may have done on the host as root, beside the steps of its cluster (`cluster/step-program`). */
export const verbs: readonly AnyVerb[] = [
  changePassword,
  tryNetworkChange,
  decideNetworkChange,
  finishNetworkChanges,
]
