// A cell of 802.11g or 802.11n in ns-3: an access point and its stations, with UDP down, up or both ways. The program prints
// one JSON line. The cell is set up as Sojourn's cells are:
//
//  * One rate for all stations, 54 Mbit/s or MCS 7 at 20 MHz (65 Mbit/s), acknowledged at 24 Mbit/s; at 2.4 GHz, short slots.
//    All nodes hear each other equally well, so that only collisions lose frames. All nodes notice a collision, however many
//    frames collide. By default ns-3's nodes do not notice a frame that is 4 dB or less above the others, and then contend
//    after DIFS instead of EIFS.
//  * 802.11g contends by DCF, 802.11n by EDCA in AC_BE. With EDCA the access point's CWmax is 63, as in hostapd. There are up
//    to 32 frames per A-MPDU, as in ath9k, and no A-MSDU.
//  * Datagrams have 1472 bytes. With 802.11n they have 16 bytes more, in place of CCMP, which do not count as goodput.
//  * Beacons are a second apart, and stop before there is load. Some are necessary: an access point of ns-3 3.37 changes to the
//    short slot when it sends a beacon. Until then it contends with slots of 20 us, and the stations with slots of 9 us.
//  * There is no queue above the MAC's own, which drops by length and not by age.
//  * Stations associate and agree on Block Ack one after another in the first four seconds, before there is load. Under load
//    ns-3 3.37 can give up the agreement, and the station then has no traffic at all.
//
// Build with Debian's ns-3 (apt-get install libns3-dev); benches/speed.py and validation/wifi_ns3.py do so:
//   g++ -O2 -std=c++17 ns3_wifi.cc -o ns3_wifi -lns3-core -lns3-network -lns3-internet -lns3-mobility -lns3-propagation
//       -lns3-wifi -lns3-applications -lns3-traffic-control -lns3-stats -lns3-bridge -lns3-spectrum -lns3-antenna
// Run it:
//   ./ns3_wifi --standard=n --stations=4 --direction=both --rate=10 --dur=10 --seed=1
// --rate is the UDP payload per flow in Mbit/s, as the mean over the flows. A station has one flow each way.

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/traffic-control-module.h"
#include "ns3/wifi-module.h"
#include "ns3/yans-wifi-helper.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

constexpr uint32_t kPayload = 1472;
constexpr uint32_t kCcmp = 16;
constexpr double kSettled = 4.0; // s, for associations and Block Ack agreements
constexpr double kWarmup = 1.0;  // s of load before the statistics start

struct Options
{
    std::string standard = "g";
    std::string direction = "up";
    uint32_t stations = 1;
    double rate = 10;
    double dur = 10;
    uint32_t queue = 200;
    uint32_t seed = 1;
};

// What was received in one direction after the warm-up, and the packets of the whole run.
struct Received
{
    uint64_t packets = 0;
    double bytes = 0;
    std::vector<double> delays_ms;
};

// When a packet was sent.
class Sent : public Tag
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId id = TypeId("sojourn::Sent").SetParent<Tag>().AddConstructor<Sent>();
        return id;
    }

    TypeId GetInstanceTypeId() const override
    {
        return GetTypeId();
    }

    uint32_t GetSerializedSize() const override
    {
        return 8;
    }

    void Serialize(TagBuffer to) const override
    {
        to.WriteU64(static_cast<uint64_t>(at.GetNanoSeconds()));
    }

    void Deserialize(TagBuffer from) override
    {
        at = NanoSeconds(static_cast<int64_t>(from.ReadU64()));
    }

    void Print(std::ostream& to) const override
    {
        to << at;
    }

    Time at;
};

// UDP at a constant rate from one node to another.
class Flow
{
  public:
    Flow(Ptr<Node> from, Ptr<Node> to, Ipv4Address address, uint16_t port, uint32_t bytes, Received& into)
        : m_bytes(bytes),
          m_into(into)
    {
        m_sender = Socket::CreateSocket(from, UdpSocketFactory::GetTypeId());
        m_sender->Connect(InetSocketAddress(address, port));
        m_receiver = Socket::CreateSocket(to, UdpSocketFactory::GetTypeId());
        m_receiver->Bind(InetSocketAddress(Ipv4Address::GetAny(), port));
        m_receiver->SetRecvCallback(MakeCallback(&Flow::Receive, this));
    }

    void SendOnce()
    {
        Sent tag;
        tag.at = Simulator::Now();
        Ptr<Packet> packet = Create<Packet>(m_bytes);
        packet->AddPacketTag(tag);
        m_sender->Send(packet);
    }

    void SendEvery(Time interval)
    {
        SendOnce();
        Simulator::Schedule(interval, &Flow::SendEvery, this, interval);
    }

  private:
    void Receive(Ptr<Socket> socket)
    {
        while (Ptr<Packet> packet = socket->Recv())
        {
            Sent tag;
            m_into.packets++;
            if (Simulator::Now() < Seconds(kSettled + kWarmup) || !packet->PeekPacketTag(tag))
            {
                continue;
            }
            m_into.bytes += kPayload;
            m_into.delays_ms.push_back((Simulator::Now() - tag.at).GetSeconds() * 1e3);
        }
    }

    Ptr<Socket> m_sender;
    Ptr<Socket> m_receiver;
    uint32_t m_bytes;
    Received& m_into;
};

double
quantile(std::vector<double>& values, double level)
{
    if (values.empty())
    {
        return -1;
    }
    const auto at = static_cast<size_t>(std::max(0.0, std::ceil(level * values.size()) - 1));
    std::nth_element(values.begin(), values.begin() + at, values.end());
    return values[at];
}

void
print(const char* name, Received& received, double seconds, const char* end)
{
    double sum = 0;
    for (const double delay : received.delays_ms)
    {
        sum += delay;
    }
    std::printf("\"%s\": {\"goodput_mbps\": %.4f, \"delay_mean_ms\": %.4f, \"delay_p50_ms\": %.4f, "
                "\"delay_p95_ms\": %.4f, \"packets\": %zu}%s",
                name,
                received.bytes * 8 / seconds / 1e6,
                received.delays_ms.empty() ? -1 : sum / static_cast<double>(received.delays_ms.size()),
                quantile(received.delays_ms, 0.5),
                quantile(received.delays_ms, 0.95),
                received.delays_ms.size(),
                end);
}

} // namespace

int
main(int argc, char* argv[])
{
    Options options;
    CommandLine command(__FILE__);
    command.AddValue("standard", "g or n", options.standard);
    command.AddValue("direction", "down, up or both", options.direction);
    command.AddValue("stations", "how many", options.stations);
    command.AddValue("rate", "Mbit/s of payload per flow", options.rate);
    command.AddValue("dur", "seconds of load, the first of which is left out", options.dur);
    command.AddValue("queue", "packets of the MAC's queue", options.queue);
    command.AddValue("seed", "of the random numbers", options.seed);
    command.Parse(argc, argv);
    RngSeedManager::SetSeed(options.seed);
    const bool n = options.standard == "n";
    const uint32_t bytes = kPayload + (n ? kCcmp : 0);

    Config::SetDefault("ns3::WifiMacQueue::MaxSize", QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, options.queue)));
    Config::SetDefault("ns3::WifiMacQueue::MaxDelay", TimeValue(Seconds(1000)));
    Config::SetDefault("ns3::ArpCache::AliveTimeout", TimeValue(Seconds(10000)));

    NodeContainer accessPoint(1);
    NodeContainer stations(options.stations);

    Ptr<MatrixPropagationLossModel> loss = CreateObject<MatrixPropagationLossModel>();
    loss->SetDefaultLoss(50);
    Ptr<YansWifiChannel> channel = CreateObject<YansWifiChannel>();
    channel->SetPropagationLossModel(loss);
    channel->SetPropagationDelayModel(CreateObject<ConstantSpeedPropagationDelayModel>());
    YansWifiPhyHelper phy;
    phy.SetChannel(channel);
    phy.SetPreambleDetectionModel("ns3::ThresholdPreambleDetectionModel", "Threshold", DoubleValue(-100));
    phy.Set("ChannelSettings", StringValue("{0, 20, BAND_2_4GHZ, 0}"));

    WifiHelper wifi;
    wifi.SetStandard(n ? WIFI_STANDARD_80211n : WIFI_STANDARD_80211g);
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager",
                                 "DataMode",
                                 StringValue(n ? "HtMcs7" : "ErpOfdmRate54Mbps"),
                                 "ControlMode",
                                 StringValue("ErpOfdmRate24Mbps"),
                                 "MaxSlrc",
                                 UintegerValue(7),
                                 "MaxSsrc",
                                 UintegerValue(7));
    // A frame has 1472 and 16 bytes of payload, 28 of IP and UDP, 8 of LLC, 30 of MAC header and FCS, 4 of delimiter, and 2 of
    // padding.
    const uint32_t aggregate = 32 * 1560;
    const Ssid ssid("cell");
    WifiMacHelper mac;
    mac.SetType("ns3::ApWifiMac",
                "Ssid",
                SsidValue(ssid),
                "QosSupported",
                BooleanValue(n),
                "BeaconInterval",
                TimeValue(MicroSeconds(1024 * 1000)),
                "BE_MaxAmpduSize",
                UintegerValue(aggregate),
                "BE_MaxAmsduSize",
                UintegerValue(0));
    const NetDeviceContainer accessPointDevice = wifi.Install(phy, mac, accessPoint);
    mac.SetType("ns3::StaWifiMac",
                "Ssid",
                SsidValue(ssid),
                "QosSupported",
                BooleanValue(n),
                "ActiveProbing",
                BooleanValue(true),
                "MaxMissedBeacons",
                UintegerValue(1000000),
                "BE_MaxAmpduSize",
                UintegerValue(aggregate),
                "BE_MaxAmsduSize",
                UintegerValue(0));
    const NetDeviceContainer stationDevices = wifi.Install(phy, mac, stations);
    // A beacon would announce the access point's own contention window to the stations.
    Simulator::Schedule(Seconds(kSettled) - MilliSeconds(50), [&accessPointDevice, n]() {
        Ptr<ApWifiMac> own =
            DynamicCast<ApWifiMac>(DynamicCast<WifiNetDevice>(accessPointDevice.Get(0))->GetMac());
        own->SetAttribute("BeaconGeneration", BooleanValue(false));
        if (n)
        {
            own->GetQosTxop(AC_BE)->SetMaxCw(63);
        }
    });

    MobilityHelper mobility;
    Ptr<ListPositionAllocator> places = CreateObject<ListPositionAllocator>();
    places->Add(Vector(0, 0, 0));
    for (uint32_t i = 0; i < options.stations; i++)
    {
        places->Add(Vector(1, 0, 0));
    }
    mobility.SetPositionAllocator(places);
    mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
    mobility.Install(accessPoint);
    mobility.Install(stations);

    InternetStackHelper internet;
    internet.Install(accessPoint);
    internet.Install(stations);
    Ipv4AddressHelper addresses;
    addresses.SetBase("10.0.0.0", "255.255.255.0");
    const Ipv4InterfaceContainer accessPointAddress = addresses.Assign(accessPointDevice);
    const Ipv4InterfaceContainer stationAddresses = addresses.Assign(stationDevices);
    TrafficControlHelper none;
    none.Uninstall(accessPointDevice);
    none.Uninstall(stationDevices);

    Received down;
    Received up;
    std::vector<Flow> flows;
    flows.reserve(2 * options.stations);
    Ptr<UniformRandomVariable> uniform = CreateObject<UniformRandomVariable>();
    const uint32_t all = options.stations * (options.direction == "both" ? 2 : 1);
    const double apart = 0.5 / options.stations;
    for (uint32_t i = 0; i < options.stations; i++)
    {
        for (const bool isDown : {true, false})
        {
            if (options.direction != "both" && isDown != (options.direction == "down"))
            {
                continue;
            }
            const Ptr<Node> from = isDown ? accessPoint.Get(0) : stations.Get(i);
            const Ptr<Node> to = isDown ? stations.Get(i) : accessPoint.Get(0);
            const Ipv4Address address = isDown ? stationAddresses.GetAddress(i) : accessPointAddress.GetAddress(0);
            flows.emplace_back(from, to, address, 1000 + 2 * i + isDown, bytes, isDown ? down : up);
            // Two early packets cause address resolution and the Block Ack agreement. The flow starts later, at a random phase.
            for (const double at : {3.0, 3.02})
            {
                Simulator::Schedule(Seconds(at + i * apart + isDown * apart / 2), &Flow::SendOnce, &flows.back());
            }
            // Rates are up to 2 % above or below the mean, so that the flows' phases drift and take all values in a run.
            const double number = static_cast<double>(flows.size() - 1);
            const double drift = 1 + 0.04 * ((number + 0.5) / all - 0.5);
            const Time interval = Seconds(kPayload * 8 / (options.rate * drift * 1e6));
            const Time start = Seconds(kSettled) + interval * uniform->GetValue();
            Simulator::Schedule(start, &Flow::SendEvery, &flows.back(), interval);
        }
    }
    Simulator::Stop(Seconds(kSettled + options.dur));
    Simulator::Run();
    const double counted = options.dur - kWarmup;
    std::printf("{\"events\": %llu, \"packets\": %llu, \"goodput_mbps\": %.4f, ",
                static_cast<unsigned long long>(Simulator::GetEventCount()),
                static_cast<unsigned long long>(down.packets + up.packets),
                (down.bytes + up.bytes) * 8 / counted / 1e6);
    print("down", down, counted, ", ");
    print("up", up, counted, "}\n");
    Simulator::Destroy();
    return 0;
}
