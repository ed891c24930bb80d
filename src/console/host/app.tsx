import { effect } from '@preact/signals'
import { LoginPage } from '../shared/login.tsx'
import { hasEnded, phase } from '../shared/session.ts'
import { startConsole } from '../shared/shell.tsx'
import { upload } from '../shared/upload.ts'
import { followHost, hostName, readHostName, text } from './host.tsx'
import { hostSession } from './session.ts'
import { Access } from './pages/access.tsx'
import { Audit } from './pages/audit.tsx'
import { Cluster } from './pages/cluster.tsx'
import { Content, UploadBar } from './pages/content.tsx'
import { Network } from './pages/network.tsx'
import { Overview } from './pages/overview.tsx'
import { System } from './pages/system.tsx'

effect(() => {
  if (phase.value !== 'in' || hasEnded.value) return undefined
  // The name is for the frame of the pages; a page says itself what it could not read.
  void readHostName().catch(() => undefined)
  return followHost()
})

startConsole({
  session: hostSession,
  name: hostName,
  pages: [
    { path: '/', icon: 'host', title: () => text.value.overview.title, view: Overview, isMain: true },
    { path: '/cluster', icon: 'cluster', title: () => text.value.cluster.title, view: Cluster, isMain: true },
    { path: '/content', icon: 'content', title: () => text.value.content.title, view: Content, isMain: true },
    {
      path: '/network',
      icon: 'network',
      title: () => text.value.network.title,
      view: Network,
      isMain: false,
    },
    { path: '/access', icon: 'access', title: () => text.value.access.title, view: Access, isMain: false },
    { path: '/audit', icon: 'audit', title: () => text.value.audit.title, view: Audit, isMain: false },
    { path: '/system', icon: 'system', title: () => text.value.system.title, view: System, isMain: false },
  ],
  login: () => (
    <LoginPage hint={text.value.login.hint}>
      <details>
        <summary>{text.value.login.trust}</summary>
        <p>{text.value.login.compare}</p>
      </details>
    </LoginPage>
  ),
  floating: (path) =>
    path !== '/content' &&
    upload.value && (
      <aside class="float">
        <UploadBar />
      </aside>
    ),
})
