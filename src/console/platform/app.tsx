import { effect, signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { LoginPage } from '../shared/login.tsx'
import { Note, PageHeader } from '../shared/parts.tsx'
import { phase, user } from '../shared/session.ts'
import { hrefOf, placeParts, placeProject, startConsole } from '../shared/shell.tsx'
import { AskForLink, SetPassword } from './pages/password.tsx'
import { Audit } from './pages/audit.tsx'
import { Cluster } from './pages/cluster.tsx'
import { ClusterList } from './pages/clusters.tsx'
import { Connect } from './pages/connect.tsx'
import { CreateCluster } from './pages/create-cluster.tsx'
import { Host } from './pages/host.tsx'
import { HostList } from './pages/hosts.tsx'
import { ImportBar, pageOf } from './pages/import-card.tsx'
import { Pack, PackList } from './pages/packs.tsx'
import { Profile, ProfileList } from './pages/profiles.tsx'
import { Tokens } from './pages/tokens.tsx'
import { Users } from './pages/users.tsx'
import { ScopeBar } from './scope-bar.tsx'
import { running } from './imports.ts'
import { text } from './platform.ts'
import { me, platformSession, projects, roleIn } from './session.ts'

function HostsOf() {
  const [part] = placeParts.value
  if (part === undefined || part === '') return <HostList />
  return part === 'connect' ? <Connect /> : <Host key={part} uid={part} />
}

const Hosts = () => (
  <InScope title={text.value.hosts.title}>
    <HostsOf />
  </InScope>
)

function ClustersOf() {
  const [part] = placeParts.value
  if (part === undefined || part === '') return <ClusterList />
  return part === 'new' ? <CreateCluster /> : <Cluster key={part} uid={part} />
}

const Clusters = () => (
  <InScope title={text.value.clusters.title}>
    <ClustersOf />
  </InScope>
)

function ProfilesOf() {
  const [uid, where] = placeParts.value
  if (uid === undefined || uid === '') return <ProfileList />
  return <Profile key={uid} uid={uid} isOfTenant={where === 'tenant'} />
}

const Profiles = () => (
  <InScope title={text.value.profiles.title}>
    <ProfilesOf />
  </InScope>
)

function PacksOf() {
  const [uid] = placeParts.value
  return uid === undefined || uid === '' ? <PackList /> : <Pack key={uid} uid={uid} />
}

const Packs = () => (
  <InScope title={text.value.packs.title}>
    <PacksOf />
  </InScope>
)

/** A page of the scope, for who has a role there. */
function InScope({ title, children }: { title: string; children: ComponentChildren }) {
  if (roleIn(placeProject.value) !== undefined) return <>{children}</>
  return (
    <>
      <PageHeader title={title} />
      <Note mood="info">
        <p>{text.value.scope.noRole}</p>
      </Note>
    </>
  )
}

/** Pages of the tenant itself, which no project changes. */
const ofTenant = ['/tokens', '/users', '/audit']

effect(() => {
  if (phase.value !== 'in' || !me.value) return
  const [first] = projects.value
  // Who has roles in projects alone begins in one.
  if (placeProject.value === undefined && roleIn(undefined) === undefined && first)
    location.replace(hrefOf('/hosts', first.metadata.uid))
})

effect(() => {
  // The role is that in the scope of the place.
  const role = roleIn(placeProject.value) ?? 'viewer'
  const now = user.peek()
  if (now && now.role !== role) user.value = { ...now, role }
})

startConsole({
  session: platformSession,
  name: signal(location.host),
  pages: [
    { path: '/hosts', icon: 'host', title: () => text.value.hosts.title, view: Hosts, isMain: true },
    {
      path: '/clusters',
      icon: 'cluster',
      title: () => text.value.clusters.title,
      view: Clusters,
      isMain: true,
    },
    {
      path: '/profiles',
      icon: 'content',
      title: () => text.value.profiles.title,
      view: Profiles,
      isMain: true,
    },
    { path: '/packs', icon: 'packs', title: () => text.value.packs.title, view: Packs, isMain: false },
    { path: '/tokens', icon: 'key', title: () => text.value.tokens.title, view: Tokens, isMain: false },
    { path: '/users', icon: 'access', title: () => text.value.users.title, view: Users, isMain: false },
    { path: '/audit', icon: 'audit', title: () => text.value.audit.title, view: Audit, isMain: false },
  ],
  login: () => (
    <LoginPage hint={text.value.login.hint}>
      <AskForLink />
    </LoginPage>
  ),
  open: { password: () => <SetPassword /> },
  floating(path) {
    const { kind } = running.value ?? {}
    // The page of a list shows it itself.
    if (kind === undefined || (path === pageOf(kind) && (placeParts.value[0] ?? '') === '')) return null
    return (
      <aside class="float">
        <ImportBar />
      </aside>
    )
  },
  above: (path) => !ofTenant.includes(path) && <ScopeBar path={path} />,
})
