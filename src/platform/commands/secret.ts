import { defineCommand, type Noun } from '../../ctl/command.ts'
import { yes } from '../../ctl/options.ts'

export const secret: Noun = [
  defineCommand({
    name: 'secret change',
    summary: 'Replace the secret of the platform, and seal anew what is sealed with it',
    details:
      'Needs root, and a platform that does not run: systemctl stop edgeplatformd.socket edgeplatformd.service. For a secret that someone may have read: all tokens end, users log in again, hosts do so by themselves. API keys and registration tokens stay. If it was interrupted, run it again.',
    options: { yes },
    load: async () => (await import('./run-backup.ts')).runSecretChange,
  }),
]
