import { changePassword, setSshKeys } from '../auth/verbs.ts'
import { linkToPlatform, placeConfiguration, runStages } from '../configuration/verbs.ts'
import { makeSupportArchive, ping, traceroute } from '../diagnosis/verbs.ts'
import { removeConfiguration, restartDaemon, stopHost } from '../power/verbs.ts'
import {
  checkNetworkRevert,
  decideNetworkChange,
  failNetworkChange,
  finishNetworkChanges,
  removeNetwork,
  tryNetworkChange,
} from '../network/trial/verbs.ts'
import { setHostName, setTimeServers } from '../setup/verbs.ts'
import type { AnyVerb } from '../verbs/verb.ts'

/** All that the daemon may have done on the host as root, beside the steps of its cluster (`cluster/step-program`). */
export const verbs: readonly AnyVerb[] = [
  changePassword,
  setSshKeys,
  stopHost,
  restartDaemon,
  removeConfiguration,
  ping,
  traceroute,
  makeSupportArchive,
  tryNetworkChange,
  decideNetworkChange,
  failNetworkChange,
  checkNetworkRevert,
  finishNetworkChanges,
  setHostName,
  setTimeServers,
  removeNetwork,
  placeConfiguration,
  runStages,
  linkToPlatform,
]
