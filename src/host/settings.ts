import type { Mode } from '../base/role.ts'
import type { Settings } from './schemas.ts'

/** The settings that follow from `host.mode`: an airgapped host is managed here, a connected one by the platform. */
export function settingsOf(mode: Mode): Settings {
  return {
    featureFlags: {},
    installationMode: mode,
    managementMode: mode === 'airgap' ? 'local' : 'central',
  }
}
